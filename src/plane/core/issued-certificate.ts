// What every flow has in common that hands out a certificate, of whatever kind: what is taken from a request, and the commit.

import type { Change } from '#domain/core/change.ts'
import type { IssueFacts } from '#domain/identity/node-certificate.ts'
import { parseCsrAside } from '#pki/csr.ts'
import { spkiHash } from '#pki/keys.ts'
import type { VerifySignature } from '#pki/signature.ts'
import type { Committed } from '#plane/store/contract/store.ts'
import { commitOnce } from './commit-decision.ts'
import type { FlowCore } from './core.ts'
import type { Issuer } from './issuer.ts'

/** The public key, which `verifyProof` finds proven to be its sender's: all that is ever taken from a certificate request. */
export const keyInRequest = async (verifyProof: VerifySignature, csr: string): Promise<IssueFacts['key']> => {
  const parsed = await parseCsrAside(csr, verifyProof)
  if (parsed.kind === 'malformed') return parsed
  return { kind: 'key', keyType: parsed.keyType, spki: parsed.spki, spkiHash: spkiHash(parsed.spki) }
}

/**
 * The commit that hands a certificate out relies on the authority that has signed it: one that was withdrawn or replaced
 * meanwhile, on any replica, makes it lose the race, and the next try is signed by another.
 */
export const commitIssued = async (
  core: FlowCore,
  issuer: Pick<Issuer, 'withdrawnIssuers' | 'rowRead' | 'lookAgain'>,
  signed: { readonly issuer: string },
  change: Change,
): Promise<Committed | 'lost-race'> => {
  // Withdrawn here since it signed: its row is known as it is now, and would not lose.
  if (issuer.withdrawnIssuers().includes(signed.issuer)) return 'lost-race'
  const signedBy = issuer.rowRead(signed.issuer)
  const outcome = await commitOnce(core, { ...change, reads: [...change.reads, signedBy] })
  if (outcome !== 'lost-race') return outcome
  const now = await core.store.get('issuer', signed.issuer)
  // Else it is some other row that has changed, and the caller reads that again.
  if (now === null || now.version !== signedBy.version) await issuer.lookAgain()
  return outcome
}
