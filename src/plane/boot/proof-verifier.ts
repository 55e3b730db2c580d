// Who checks the proofs of possession in certificate requests: a thread of its own where there is a processor for it. Elsewhere a hand-over
// would only cost.

import { digestOf, verifyAs, type VerifySignature } from '#pki/signature.ts'
import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import { openSignatureChecks, type SignatureChecks } from '#platform/signature-checks.ts'

export type ProofVerifier = {
  readonly verify: VerifySignature
  /** After the listeners. */
  close(): Promise<void>
}

type VerifierCore = { readonly clock: Pick<Clock, 'monotonicMs'>; readonly log: Log }

export const openProofVerifier = (core: VerifierCore, ownThread: boolean): ProofVerifier => {
  if (!ownThread) return { verify: verifyAs, close: async () => {} }
  const checks = openSignatureChecks()
  return { verify: verifyAside(core, checks), close: () => checks.close() }
}

/** A thread that cannot be started now is not started for each request. */
const restMs = 10_000

/** On the thread; and here while it fails, for as long as it rests: machines need their identities when memory or processes are short, too. */
export const verifyAside = ({ clock, log }: VerifierCore, checks: Pick<SignatureChecks, 'verify'>): VerifySignature => {
  let restsUntilMs = -Infinity
  return (algorithm, key, data, signature) => {
    if (clock.monotonicMs() < restsUntilMs) return verifyAs(algorithm, key, data, signature)
    return checks.verify({ digest: digestOf[algorithm], key, data, signature }).catch((error: unknown) => {
      const nowMs = clock.monotonicMs()
      if (nowMs >= restsUntilMs)
        log.warn({ err: error }, 'proofs of possession are checked on the main thread for a while')
      restsUntilMs = nowMs + restMs
      return verifyAs(algorithm, key, data, signature)
    })
  }
}
