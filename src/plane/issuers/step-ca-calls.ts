// The two calls that a step-ca is given orders by: sign, and revoke.

import type { RevocationReason } from '#domain/core/certificate.ts'
import { decimalSerial } from '#domain/issuers/serial.ts'
import { reasonCodes } from '#pki/crl.ts'
import { readRequestNames } from '#pki/csr.ts'
import { toPem } from '#pki/pem.ts'
import { isoTime } from '#platform/clock.ts'
import { type IssuerAnswer, type IssuerClient, IssuerFault } from '#plane/outside/issuer-client.ts'
import { AnotherSerial, type Attempt, type Returned, type Unsent, type Unsigned } from './outside-signer.ts'
import { chainOf, messageOf, serialNamed, textOf } from './step-ca-answer.ts'
import { type Minting, type Provisioner, revokeToken, signToken } from './step-ca-token.ts'

export type StepCa = {
  readonly client: IssuerClient
  readonly minting: Minting
  /** A JWK provisioner, for enrollments, recoveries and revocations. */
  readonly enrollment: Provisioner
  /** An X5C provisioner. With the credential of now: it is replaced in time. */
  renewal(): Provisioner
}

export const signThere = async (
  { client, minting }: StepCa,
  { order, serial, request }: Pick<Attempt, 'order' | 'serial' | 'request'>,
  by: Provisioner,
  signal: AbortSignal,
): Promise<Returned | Unsent | Unsigned> => {
  if (serial === null) throw new Error('a step-ca was about to choose a serial number')
  const names = readRequestNames(request)
  if (names.kind === 'malformed') return { kind: 'unsigned', why: `the request is malformed: ${names.why}` }
  // It would have to repeat names in the token that are not ours to give.
  if (names.hasAltNames) return { kind: 'unsigned', why: 'the request has alternative names; step-ca takes none' }
  const json = {
    csr: toPem('CERTIFICATE REQUEST', request),
    ott: await signToken(minting, by, { order, serial, request, names }),
    notAfter: isoTime(order.issuedAtMs + order.lifetimeMs),
  }
  let answer: IssuerAnswer
  try {
    answer = await client.ask({ method: 'POST', path: '/1.0/sign', json }, signal)
  } catch (error) {
    if (error instanceof IssuerFault && error.isUndone) return { kind: 'unsent', why: error.message }
    throw error
  }
  const { status } = answer
  if (status === 201 || status === 200) {
    const chain = chainOf(answer.json)
    if (chain === null) throw failed('it answers that it has signed, and sends no certificate')
    return { kind: 'returned', chain }
  }
  if (status === 429) return { kind: 'unsent', why: messageOf(answer) }
  // All that step-ca refuses it refuses before it signs.
  if (status >= 400 && status < 500) return { kind: 'unsigned', why: messageOf(answer) }
  throw failed(messageOf(answer))
}

/** It keeps revocations in a database, and has none. */
export class NoDatabase extends Error {
  override readonly name = 'NoDatabase'
}

export const revokeThere = async (
  { client, minting, enrollment }: StepCa,
  serial: string,
  reason: RevocationReason,
  signal: AbortSignal,
): Promise<'revoked'> => {
  const json = {
    serial: decimalSerial(serial),
    ott: await revokeToken(minting, enrollment, serial),
    reasonCode: reasonCodes[reason],
    reason,
    passive: true,
  }
  const answer = await client.ask({ method: 'POST', path: '/1.0/revoke', json }, signal)
  const named = serialNamed(answer.json)
  if (named !== null && named !== serial) throw new AnotherSerial(serial, named.slice(0, 64))
  if (answer.status === 200 && textOf(answer.json, 'status') === 'ok') return 'revoked'
  // A serial that was revoked before is refused as a bad request, and only the sentence says why.
  if (answer.status === 400 && named !== null && messageOf(answer).includes('already revoked')) return 'revoked'
  if (answer.status === 501) throw new NoDatabase('step-ca has no database, and can revoke nothing')
  throw failed(messageOf(answer))
}

const failed = (why: string): IssuerFault => new IssuerFault(`step-ca: ${why}`, 'failed', false)
