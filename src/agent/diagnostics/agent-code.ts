// The short code of an agent, from what it wrote of itself. All functions here are pure.

import { precedence } from '#domain/recovery/failure-class.ts'
import { encodeShortCode, nodeMark, type ShortFacts } from '#domain/recovery/short-code.ts'
import { parseIsoTime } from '#platform/clock.ts'
import type { StatusFile, StatusTrouble } from './status-file.ts'

export type CodeFacts = {
  readonly status: StatusFile
  readonly running: boolean
  /** As the agent judges it. */
  readonly nowMs: number
  readonly freeBytes: number | null
}

export const codeOf = ({ status, running, nowMs, freeBytes }: CodeFacts): string => {
  const worst = worstOf(status.troubles)
  const leftMs = certificateLeftMs(status, nowMs)
  return encodeShortCode({
    class: worst?.class ?? status.outcome?.class ?? (leftMs !== null && leftMs <= 0 ? 'cert_expired' : null),
    place: worst?.place ?? 'channel',
    certificateLeftMs: leftMs,
    clockBehindMs: status.plane?.clock_behind_ms ?? null,
    attempts: worst?.attempts ?? 0,
    cause: causeOf(status, worst),
    freeBytes,
    silentMs: silentMs(status, running, nowMs),
    nodeMark: status.node_id === null || status.domain === null ? 0 : nodeMark(status.domain, status.node_id),
  })
}

/** The one that explains the others: a full disk makes everything else look broken, too. Null when there is none. */
export const worstOf = (troubles: readonly StatusTrouble[]): StatusTrouble | null =>
  [...troubles].sort((a, b) => rankOf(a) - rankOf(b))[0] ?? null

const rankOf = ({ class: what }: StatusTrouble): number =>
  what === null || what === undefined ? precedence.length : precedence.indexOf(what)

export const certificateLeftMs = ({ certificate }: StatusFile, nowMs: number): number | null => {
  const notAfterMs = certificate === null ? null : parseIsoTime(certificate.not_after)
  return notAfterMs === null ? null : notAfterMs - nowMs
}

const causeOf = ({ outcome }: StatusFile, worst: StatusTrouble | null): ShortFacts['cause'] => {
  if (worst === null) return outcome?.code ?? null
  const { errno, code } = worst.evidence ?? {}
  return (
    [errno, code, worst.code].find((cause) => typeof cause === 'string' && /^[A-Z]/.test(cause))?.toString() ?? null
  )
}

const silentMs = (status: StatusFile, running: boolean, nowMs: number): number | null => {
  if (running && status.channel.open) return 0
  const last = status.plane?.last_exchange ?? null
  const lastMs = last === null ? null : parseIsoTime(last)
  return lastMs === null ? null : Math.max(0, nowMs - lastMs)
}
