// The authorities as they stand, whoever changed them: other planes over the same store replace what they share.

import type { AuthorityDeps, AuthorityState } from './authority-state.ts'
import { signerFrom } from './ca-signer.ts'
import { bookOf } from './issuer-book.ts'

export const lookAgain = async (deps: AuthorityDeps, state: AuthorityState): Promise<void> => {
  // In this order: a key is kept before the book names it, so whatever the book names is there to be found.
  await readBook(deps, state)
  await deps.custody.refresh()
  state.rootOnline = deps.custody.has({ role: 'root', id: state.book.root.id })
  reopenSigner(deps, state)
}

export const readBook = async (deps: AuthorityDeps, state: AuthorityState): Promise<void> => {
  state.book = bookOf(await deps.store.issuers())
}

const reopenSigner = ({ custody, options }: AuthorityDeps, state: AuthorityState): void => {
  const { book, signer } = state
  const onRecord = signer === null ? null : book.find(signer.record.id)
  if (onRecord !== null && onRecord.value.compromisedAtMs !== null) state.signer = null
  if (options.issuerKey === 'memory') {
    // Another plane was asked for new ones everywhere.
    if (onRecord !== null && onRecord.value.retiredAtMs !== null) state.signer = null
  } else if (book.issuing !== null && book.issuing.id !== signer?.record.id) {
    // What is retired may still sign; where the key of its successor is not here, it does.
    state.signer = signerFrom(custody, book.issuing) ?? state.signer
  }
}
