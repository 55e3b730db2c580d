// What ends channels: a denial the moment it is committed, expiry and silence by a sweep of the clocks.

import type { Committed } from '#plane/store/store.ts'
import type { Clock } from '#platform/clock.ts'
import { pingEveryMs, pongWithinMs } from '#wire/channel.ts'
import type { SessionRegistry } from './session-registry.ts'

/** A subscriber of the feed: when the revocation is answered, its channels are gone already. */
export const cutDenied =
  (sessions: SessionRegistry) =>
  ({ writes }: Committed): void => {
    for (const write of writes) {
      if (write.put !== 'denial') continue
      const denial = write.value
      const candidates = denial.kind === 'epoch' ? [...sessions.of(denial.node)] : [...sessions.all()]
      for (const session of candidates) {
        const { epoch, proof } = session.principal
        const hit =
          denial.kind === 'epoch'
            ? epoch <= denial.epoch
            : proof.issuer === denial.issuer && proof.serial === denial.serial
        if (!hit) continue
        session.end('CLIENT_CERT_DENIED', denial.why)
        sessions.ended(session)
      }
    }
  }

/** Once a second. By the wall clock, since a timer as long as a certificate lives does not exist in Node. */
export const sweepSessions = (sessions: SessionRegistry, clock: Clock): void => {
  const nowMs = clock.nowMs()
  const monotonicMs = clock.monotonicMs()
  for (const session of [...sessions.all()]) {
    if (nowMs >= session.principal.notAfterMs) {
      session.end('CLIENT_CERT_EXPIRED', null)
      sessions.ended(session)
    } else if (monotonicMs - session.heardMs > pongWithinMs) {
      session.destroy()
      sessions.ended(session)
    } else if (monotonicMs - session.heardMs > pingEveryMs && session.pingedMs === null) {
      session.ping(monotonicMs)
    }
  }
}
