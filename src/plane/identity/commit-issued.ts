// The commit that hands a certificate out relies on the authority that has signed it: one that was withdrawn or replaced
// meanwhile, on whatever replica, makes it lose the race, and the next try is signed by another.

import type { Change } from '#domain/core/change.ts'
import { commitOnce, type CommitDeps } from '#plane/core/commit-decision.ts'
import type { Issuer } from '#plane/core/issuer.ts'
import type { Committed, Store } from '#plane/store/contract/store.ts'

export type CommitIssuedDeps = CommitDeps & {
  readonly store: Pick<Store, 'commit' | 'get'>
  readonly issuer: Pick<Issuer, 'rowRead' | 'lookAgain' | 'withdrawnIssuers'>
}

export const commitIssued = async (
  { store, feed, issuer }: CommitIssuedDeps,
  issued: { readonly issuer: string },
  change: Change,
): Promise<Committed | 'lost-race'> => {
  // Withdrawn here since it signed: its row is known as it is now, and would not lose.
  if (issuer.withdrawnIssuers().includes(issued.issuer)) return 'lost-race'
  const signedBy = issuer.rowRead(issued.issuer)
  const outcome = await commitOnce({ store, feed }, { ...change, reads: [...change.reads, signedBy] })
  if (outcome !== 'lost-race') return outcome
  const now = await store.get('issuer', issued.issuer)
  // Else it is some other row that has changed, and the caller reads that again.
  if (now === null || now.version !== signedBy.version) await issuer.lookAgain()
  return outcome
}
