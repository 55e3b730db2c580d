// How long a group of commits waits for company. A transaction, its fsync and the signed head cost as much for one commit as
// for many.

import { gather, type GatherCore } from '#platform/gather.ts'

/** The longest a first commit waits. */
const longestMs = 12

/** `run` is called once, in a later turn. */
export const gatherCommits = (core: GatherCore, enough: () => boolean, run: () => void): void =>
  gather(core, { longestMs, enough }, run)
