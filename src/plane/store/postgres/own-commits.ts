// Which entries the flows of this replica have published, so that the feed leaves them out. The feed publishes everything else: what
// an earlier process wrote, and what was written here for a caller that was never answered, because the connection broke and it
// took too long to find out.
//
// An entry that can be read already may still be about to be answered. Only commits that were under way when it was first seen can
// have written it: once each of them has been answered, and none of them was it, the feed publishes it.

import type { Position } from './chain-reading.ts'
import type { StoredEntry } from '#plane/store/contract/store.ts'

export type OwnCommits = {
  begin(): OwnCommit
  /** This replica writes it, or has. */
  ownChain(chain: string): void
  /** The sequence up to which every entry from there on was published here. */
  stepOver(chain: string, from: Position): Position
  wasPublished(chain: string, sequence: number): boolean
  /** The feed has come past them. */
  passed(entries: readonly StoredEntry[]): void
  mayBeAnswered(chain: string, sequence: number): boolean
  /** The chain has lost entries: other entries may take their places. */
  forget(chain: string): void
  /** An entry that had to wait no longer has to. */
  onAnswered(run: () => void): void
}

export type OwnCommit = {
  published(entries: readonly StoredEntry[]): void
  /** With any outcome. */
  end(): void
}

type Waiting = { readonly sequence: number; readonly for: Set<OwnCommit> }

export const openOwnCommits = (): OwnCommits => {
  const underWay = new Set<OwnCommit>()
  /** By chain and sequence, the hash of each entry the feed has not come to. */
  const published = new Map<string, Map<number, string>>()
  const chains = new Set<string>()
  const waiting = new Map<string, Waiting>()
  const listeners: (() => void)[] = []

  const keep = ({ entry, hash }: StoredEntry): void => {
    const ofChain = published.get(entry.chain) ?? new Map<number, string>()
    ofChain.set(entry.sequence, hash)
    published.set(entry.chain, ofChain)
    chains.add(entry.chain)
  }
  const answered = (commit: OwnCommit): void => {
    underWay.delete(commit)
    for (const one of waiting.values()) {
      if (one.for.delete(commit) && one.for.size === 0) listeners.forEach((run) => run())
    }
  }

  return {
    begin() {
      const commit: OwnCommit = { published: (entries) => entries.forEach(keep), end: () => answered(commit) }
      underWay.add(commit)
      return commit
    },
    ownChain: (chain) => void chains.add(chain),
    stepOver(chain, from) {
      const ofChain = published.get(chain)
      let at = from
      for (let hash = ofChain?.get(at.sequence + 1); hash !== undefined; hash = ofChain?.get(at.sequence + 1)) {
        at = { sequence: at.sequence + 1, hash }
        ofChain?.delete(at.sequence)
      }
      return at
    },
    wasPublished: (chain, sequence) => published.get(chain)?.has(sequence) ?? false,
    passed: (entries) => entries.forEach(({ entry }) => published.get(entry.chain)?.delete(entry.sequence)),
    mayBeAnswered(chain, sequence) {
      if (!chains.has(chain)) return false
      const known = waiting.get(chain)
      const one = known?.sequence === sequence ? known : { sequence, for: new Set(underWay) }
      waiting.set(chain, one)
      return one.for.size > 0
    },
    forget: (chain) => void published.delete(chain),
    onAnswered: (run) => void listeners.push(run),
  }
}
