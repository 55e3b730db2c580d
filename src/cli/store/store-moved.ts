// What was moved or copied, for people and for programs.

import type { Exported } from '#plane/store/copy/export-store.ts'

type Moved = Pick<Exported, 'domain' | 'counts' | 'heads'>

export const movedBody = ({ domain, counts, heads }: Moved) => ({ domain, counts, heads })

export const movedFacts = ({ domain, counts, heads }: Moved): (readonly [string, string | string[]])[] => [
  ['domain', domain],
  ['nodes', String(counts.node)],
  ['certificates', String(counts.certificate)],
  ['sealed keys', String(counts.key)],
  ['journal', `intact, ${counts.entry} ${counts.entry === 1 ? 'entry' : 'entries'}`],
  ['heads', heads.map(({ chain, sequence, hash }) => `${chain} ${sequence} ${hash}`)],
]
