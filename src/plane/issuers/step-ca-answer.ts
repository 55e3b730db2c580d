// What a step-ca answers. It may be anything that is JSON.

import { serialOfDecimal } from '#domain/issuers/serial.ts'
import { allFromPem } from '#pki/pem.ts'
import { printableText } from '#platform/printable-text.ts'
import type { IssuerAnswer } from '#plane/outside/issuer-client.ts'

const longestMessage = 400
const mostCertificates = 8

const fieldOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>)[name] : undefined

export const textOf = (value: unknown, name: string): string => {
  const field = fieldOf(value, name)
  return typeof field === 'string' ? field : ''
}

export const listOf = (value: unknown, name: string): readonly unknown[] => {
  const field = fieldOf(value, name)
  return Array.isArray(field) ? field : []
}

export const partOf = (value: unknown, name: string): unknown => fieldOf(value, name)

/** Its own sentence, without what it puts before each of them, for people. */
export const messageOf = ({ status, json }: IssuerAnswer): string => {
  const said = textOf(json, 'message').replace(
    /^The request (was forbidden by the certificate authority|could not be completed): /,
    '',
  )
  return said === '' ? `status ${status}` : `${printableText(said.slice(0, longestMessage))} (${status})`
}

/** The leaf and those above it, DER. Null: it has sent no certificates. */
export const chainOf = (json: unknown): readonly Uint8Array[] | null => {
  const texts = listOf(json, 'certChain')
  if (texts.length === 0 || texts.length > mostCertificates) return null
  const chain = texts.flatMap((text) => (typeof text === 'string' ? (allFromPem('CERTIFICATE', text) ?? []) : []))
  return chain.length === texts.length ? chain : null
}

/** The serial that an answer to a revocation names, hex, or as it is written. Null: it names none. */
export const serialNamed = (json: unknown): string | null => {
  const named =
    textOf(json, 'serial') ||
    textOf(json, 'serial_number') ||
    (/serial number '([^']{1,64})'/.exec(textOf(json, 'message'))?.[1] ?? '')
  return named === '' ? null : (serialOfDecimal(named) ?? named)
}
