// Refusal codes that one side of a call does not know, because the other side is of a later release.
//
// Agents of the release before take an unknown code for a matter of an operator and repeat the same request for ever, so they
// are answered with the known code that makes them do the right thing. The journal, alerts and all other callers get the
// code itself. An agent of this release judges a code that it does not know by the HTTP status.

import type { Refusal } from '#domain/core/refusal.ts'
import { isRefusalCode, refusals, type RefusalCode, type RetryClass } from '#domain/core/refusal-table.ts'

/** With calls of agents: the newer codes they know, separated by spaces. A plane of the release before ignores it. */
const knownCodesHeader = 'muster-knows-codes'

/** Each with the code for agents that do not know it. */
const newerCodes: Partial<Readonly<Record<RefusalCode, RefusalCode>>> = {
  KEY_IN_USE: 'KEY_BLOCKED',
  UPGRADE_UNFINISHED: 'UNAVAILABLE',
  ISSUER_UNAVAILABLE: 'UNAVAILABLE',
}

export const knownCodesHeaders: Readonly<Record<string, string>> = {
  [knownCodesHeader]: Object.keys(newerCodes).join(' '),
}

type Headers = Readonly<Record<string, string | string[] | undefined>>

export const inKnownWords = (refusal: Refusal, headers: Headers): Refusal => {
  const known = newerCodes[refusal.code]
  if (known === undefined || !isFromAgent(headers) || knownCodesIn(headers).includes(refusal.code)) return refusal
  const detail = refusal.detail === null ? refusal.code : `${refusal.code}: ${refusal.detail}`
  return { ...refusal, code: known, detail }
}

const knownCodesIn = (headers: Headers): readonly string[] => String(headers[knownCodesHeader] ?? '').split(' ')

/** Agents ask for JSON and do not name themselves. Every release with this list has the header; others ask for anything. */
const isFromAgent = (headers: Headers): boolean =>
  headers['accept'] === 'application/json' && headers['user-agent'] === undefined

/** `code` null: no error body came with the status, as from something in front of the plane. `status` null: not over HTTP. */
export const retryClassOf = (code: string | null, status: number | null): RetryClass => {
  if (code !== null && isRefusalCode(code)) return refusals[code].retry
  if (status !== null && status >= 500) return 'unknown-later'
  return code === null && (status === 404 || status === 405) ? 'unknown-address' : 'unknown'
}
