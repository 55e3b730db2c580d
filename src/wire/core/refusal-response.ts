// A refusal as it is answered, on every listener and on bare sockets.

import type { Refusal } from '#domain/core/refusal.ts'
import { refusals } from '#domain/core/refusal-table.ts'
import { redactSecrets } from '#platform/secret-shapes.ts'
import type { ErrorBody } from './error-body.ts'

export const errorBody = (refusal: Refusal): ErrorBody => {
  const { message } = refusals[refusal.code]
  const next = nextOf(refusal)
  // Clocks count fractions of a millisecond, the schema whole ones: an agent would not know what else to make of it.
  const retryAfterMs = refusal.retryAfterMs === null ? null : Math.ceil(refusal.retryAfterMs)
  // A detail may repeat what the caller sent, and answers end up in logs.
  const detail = refusal.detail === null ? null : redactSecrets(refusal.detail)
  const body = {
    ...{ code: refusal.code, message, detail, next, retry_after_ms: retryAfterMs },
    ...fieldIn(refusal),
    ...(refusal.keyTypes === undefined ? {} : { key_types: [...refusal.keyTypes] }),
  }
  if (refusal.inForceHere === undefined) return body
  const { unaware, kept } = refusal.inForceHere
  return { ...body, in_force_here: true, replicas_unaware: [...unaware], kept_in: kept }
}

/** Left out where no single field is at fault. Its path repeats what the caller sent. */
const fieldIn = ({ field }: Refusal): Pick<ErrorBody, 'field' | 'field_unknown'> => {
  if (field === undefined) return {}
  const path = redactSecrets(field.path)
  return field.unknown ? { field: path, field_unknown: true } : { field: path }
}

/** What is known of the caller is filled in, where a shell would not take it apart. */
const nextOf = (refusal: Refusal): string => {
  const { node = null, profile = null, task = null } = refusal.about ?? {}
  const fill = (text: string, word: RegExp, value: string | null): string =>
    value === null || !pasteable.test(value) ? text : text.replace(word, value)
  const words = [
    [/\bID\b/g, node],
    [/\bPROFILE\b/g, profile],
    [/\bTASK\b/g, task],
  ] as const
  return words.reduce((text, [word, value]) => fill(text, word, value), hintOf(refusal))
}

const pasteable = /^[A-Za-z0-9._:@/+-]+$/
const mostMacs = 8

/** A node that joins by hardware cannot use a token; the refusal names the hardware to register. */
const hintOf = ({ code, about }: Refusal): string => {
  const hint: string = refusals[code].next
  if (about?.hardware === undefined) return hint
  if (code === 'ALREADY_ACTIVE')
    return 'If this machine is to take its place, stop the other: it is admitted once that is silent. If the other is the right one: muster node settle ID --reason REASON'
  if (code !== 'NODE_NOT_ENROLLED' && code !== 'NODE_REVOKED') return hint
  const { macs, bmcSerial } = about.hardware
  const options = [
    ...macs.slice(0, mostMacs).map((mac) => ` --mac ${pasteable.test(mac) ? mac : 'MAC'}`),
    // A serial number is not for the logs that an answer may end up in.
    ...(bmcSerial === null ? [] : [' --bmc-serial SERIAL']),
  ]
  if (options.length === 0) return hint
  const register = `muster node enroll ID --profile hpc-diskless${options.join('')}`
  return code === 'NODE_REVOKED'
    ? `To let the machine back in, register it anew: ${register}; then start its agent again`
    : `Register it: ${register}`
}

export type RefusalResponse = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export const refusalResponse = (refusal: Refusal): RefusalResponse => ({
  status: refusals[refusal.code].status,
  headers: {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
    ...(refusal.retryAfterMs !== null && { 'retry-after': String(Math.ceil(refusal.retryAfterMs / 1000)) }),
  },
  body: JSON.stringify(errorBody(refusal)),
})

/** The whole answer as text, for a socket that has no response object: a WebSocket upgrade, an unreadable request. */
export const refusalText = (refusal: Refusal): string => {
  const { status, headers, body } = refusalResponse(refusal)
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  // The reason phrase may be left empty, the space before it may not (RFC 9112, 4).
  return `HTTP/1.1 ${status} \r\n${lines.join('')}content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`
}
