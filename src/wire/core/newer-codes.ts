// Refusal codes that agents of the release before do not know. Such an agent takes an unknown code for a matter of an
// operator and repeats the same request for ever, so it is answered with the known code that makes it do the right thing.
// The journal, alerts and all other callers get the code itself.

import type { Refusal, RefusalCode } from '#domain/core/refusal.ts'

/** With calls of agents: the newer codes they know, separated by spaces. A plane of the release before ignores it. */
const knownCodesHeader = 'muster-knows-codes'

/** Each with the code for agents that do not know it. */
const newerCodes: Partial<Readonly<Record<RefusalCode, RefusalCode>>> = { KEY_IN_USE: 'KEY_BLOCKED' }

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
