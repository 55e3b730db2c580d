// By which two sides see whether they have the same roots.

import { hash } from 'node:crypto'

/** `roots`: PEM, in the order in which they were sent. */
export const rootsHash = (roots: readonly string[]): string => hash('sha256', roots.join(''), 'hex')
