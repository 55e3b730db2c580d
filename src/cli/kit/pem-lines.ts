import { printable } from './printable.ts'

/** A PEM text of the plane, line by line. */
export const pemLines = (pem: string): string[] => pem.trimEnd().split('\n').map(printable)
