// Who checks the proofs of possession in certificate requests: a thread of its own where there is a processor for it, and elsewhere the main
// thread. Both check together what comes together.

import { digestOf, verifyAs, type VerifySignature } from '#pki/signature.ts'
import type { Clock } from '#platform/clock.ts'
import { gather, type GatherCore } from '#platform/gather.ts'
import type { Log } from '#platform/log.ts'
import { openSignatureChecks, type SignatureChecks } from '#platform/signature-checks.ts'

export type ProofVerifier = {
  readonly verify: VerifySignature
  /** After the listeners. */
  close(): Promise<void>
}

type VerifierCore = { readonly clock: Pick<Clock, 'monotonicMs'>; readonly log: Log }

export const openProofVerifier = (core: VerifierCore & GatherCore, ownThread: boolean): ProofVerifier => {
  if (!ownThread) return { verify: verifyTogether(core), close: async () => {} }
  const checks = openSignatureChecks()
  return { verify: verifyAside(core, checks), close: () => checks.close() }
}

/** A check waits this long at most for others. */
const longestWaitMs = 2
/** Each takes about 50 µs, in which nothing else happens. */
const mostInTurn = 16

type Waiting = {
  readonly check: Parameters<VerifySignature>
  resolve(isProven: boolean): void
  reject(error: unknown): void
}

/** Here, one after the other: between two decisions a check takes longer, because the tables of the curve have left the processor's cache. */
export const verifyTogether = (core: GatherCore): VerifySignature => {
  const waiting: Waiting[] = []
  const work = (): void => {
    for (const { check, resolve, reject } of waiting.splice(0, mostInTurn))
      try {
        resolve(verifyAs(...check))
      } catch (error) {
        reject(error)
      }
    if (waiting.length > 0) core.timers.soon(work)
  }
  return (...check) =>
    new Promise((resolve, reject) => {
      if (waiting.push({ check, resolve, reject }) === 1) gather(core, { longestMs: longestWaitMs }, work)
    })
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
