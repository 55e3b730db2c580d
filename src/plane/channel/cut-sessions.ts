// What ends channels: a denial the moment it is committed, expiry and silence by a sweep of the clocks.

import { type Denial, servesUntilMs, slotsOf } from '#domain/core/certificate.ts'
import type { Node } from '#domain/core/node.ts'
import { keyBanned } from '#domain/identity/presented-certificate.ts'
import type { RetryTimes } from '#plane/limits/retry-times.ts'
import type { Committed } from '#plane/store/contract/store.ts'
import type { Clock } from '#platform/clock.ts'
import type { SessionRegistry } from '#plane/sessions/session-registry.ts'
import type { Session } from '#plane/sessions/session.ts'

/** In the turn of the feed: when a revocation is answered, its channels here are gone already. Returns how many. */
export const cutDenied =
  (sessions: SessionRegistry, retryTimes: RetryTimes) =>
  ({ writes }: Committed): number => {
    const before = sessions.count()
    for (const write of writes) {
      if (write.put !== 'denial') continue
      const denial = write.value
      const candidates = denial.kind === 'epoch' ? sessions.of(denial.node) : [...sessions.all()]
      for (const session of candidates) {
        if (!isDenied(denial, session)) continue
        if (denial.kind === 'issuer') session.end('ISSUER_WITHDRAWN', denial.why, retryTimes.nextMs())
        else session.end('CLIENT_CERT_DENIED', denial.why)
      }
    }
    cutBanned(sessions, writes)
    return before - sessions.count()
  }

/** After the denials, whose reason is the better one. A certificate that no claim leads to has only the ban of its key. */
const cutBanned = (sessions: SessionRegistry, writes: Committed['writes']): void => {
  const banned = new Set(writes.flatMap((write) => (write.put === 'key-ban' ? [write.value.spki] : [])))
  if (banned.size === 0) return
  const { code, detail } = keyBanned()
  for (const session of [...sessions.all()]) {
    if (banned.has(session.principal.credential.spki)) session.end(code, detail)
  }
}

const isDenied = (denial: Denial, { principal: { epoch, credential } }: Session): boolean => {
  switch (denial.kind) {
    case 'epoch':
      return epoch <= denial.epoch
    case 'certificate':
      return credential.issuer === denial.issuer && credential.serial === denial.serial
    case 'issuer':
      return credential.issuer === denial.issuer
  }
}

/** A certificate that has been replaced serves until its connections are drained; one replaced twice has served. */
export const limitToCertificate = (session: Session, node: Node): void => {
  const { issuer, serial } = session.principal.credential
  const slots = slotsOf(node)
  const untilMs = slots === null ? null : servesUntilMs(slots, issuer, serial)
  if (untilMs === null) endReplaced(session)
  else session.endsAtMs = untilMs
}

/** Once a second. By the wall clock, since a timer as long as a certificate lives does not exist in Node. */
export const sweepSessions = (sessions: SessionRegistry, clock: Clock): void => {
  if (!sessions.mayGoOn()) return
  const nowMs = clock.nowMs()
  const monotonicMs = clock.monotonicMs()
  for (const session of [...sessions.all()]) sweep(session, nowMs, monotonicMs)
}

const sweep = (session: Session, nowMs: number, monotonicMs: number): void => {
  const silentMs = monotonicMs - session.lastReceivedMs
  if (nowMs >= session.principal.notAfterMs) return session.end('CLIENT_CERT_EXPIRED', null)
  if (nowMs >= session.endsAtMs) return endReplaced(session)
  const { drainedAtMs } = session
  if (drainedAtMs !== null && monotonicMs >= drainedAtMs) {
    return session.end('REPLACED', 'a newer channel of this node is open')
  }
  const { pingEveryMs, pongWithinMs } = session.patience
  if (silentMs > pongWithinMs) return session.destroy()
  if (silentMs > pingEveryMs && session.pingedMs === null) session.ping(monotonicMs)
}

const endReplaced = (session: Session): void =>
  session.end('REPLACED', 'the certificate of this channel has been replaced')
