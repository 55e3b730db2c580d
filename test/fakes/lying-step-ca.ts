// A step-ca that signs and revokes what a plane orders, until a test says how it lies to a node. It reads the token and checks nothing of it:
// what a step-ca refuses is tested with a real one.

import type { ServerResponse } from 'node:http'
import { type OrderDraft, placeOrder, type SigningOrder } from '#domain/core/certificate.ts'
import { serialOfDecimal } from '#domain/issuers/serial.ts'
import { leafSpec } from '#pki/authority-certificates.ts'
import type { CertificateSpec } from '#pki/certificate.ts'
import { parseCsr } from '#pki/csr.ts'
import { parseCertificate } from '#pki/parse-certificate.ts'
import { toPem } from '#pki/pem.ts'
import type { Scope } from '../process/cleanup.ts'
import { day, hierarchy, type Held, hold, type Hierarchy } from '../vectors/pki-hierarchy.ts'
import { type Asked, says, startLyingIssuer } from './lying-issuer.ts'

/** What is signed instead. */
export type Instead = {
  readonly order?: Partial<OrderDraft>
  readonly spec?: (spec: CertificateSpec) => CertificateSpec
  readonly serial?: string
  readonly by?: Held
  /** Above the leaf. */
  readonly chain?: readonly Held[]
}

export type OrderThere = {
  readonly order: SigningOrder
  /** Hex. */
  readonly serial: string
  /** A certificate, and the answer that brings it. */
  signed(instead?: Instead): ReturnType<typeof says>
}

/** How it answers an order. */
export type StepCaLie = (response: ServerResponse, there: OrderThere, asked: Asked) => void

export type LyingStepCa = {
  readonly address: string
  readonly serverRoots: readonly string[]
  readonly authorities: Hierarchy
  /** All that it has ever signed: serials, hex, and the common names of the orders. */
  readonly signed: { readonly serial: string; readonly to: string }[]
  /** Serials, hex. */
  readonly revoked: string[]
  /** By the common name of the order; without one it does what was ordered. */
  readonly lies: Map<string, StepCaLie>
  /** Of the next answers to revocations; null: what is true. */
  revokes: ReturnType<typeof says> | null
}

export const startLyingStepCa = async (t: Scope): Promise<LyingStepCa> => {
  const issuer = await startLyingIssuer(t)
  const authorities = hierarchy('p256', Date.now() - day)
  const all: LyingStepCa = {
    ...{ address: issuer.address, serverRoots: issuer.roots, authorities },
    ...{ signed: [], revoked: [], lies: new Map<string, StepCaLie>(), revokes: null },
  }
  const sign = (response: ServerResponse, asked: Asked): void => {
    const there = orderIn(all, asked)
    if (there === null) return says(401, { message: 'not a credential' })(response, asked)
    const lie = all.lies.get(there.order.subject.cn) ?? ((_, { signed }) => signed()(response, asked))
    lie(response, there, asked)
  }
  const revoke = (response: ServerResponse, asked: Asked): void => {
    const { serial } = asked.body as { readonly serial: string }
    if (all.revokes !== null) return all.revokes(response, asked)
    all.revoked.push(serialOfDecimal(serial) ?? '')
    says(200, { status: 'ok' })(response, asked)
  }
  issuer.answer((response, asked) => {
    if (asked.path === '/1.0/sign') sign(response, asked)
    else if (asked.path === '/1.0/revoke') revoke(response, asked)
    else says(404, {})(response, asked)
  })
  return all
}

type Claims = {
  readonly muster: {
    readonly order: string
    readonly serial: string
    readonly subject: { readonly cn: string; readonly o: readonly string[]; readonly ou: readonly string[] }
    readonly uris: readonly string[]
    readonly dnsNames: readonly string[]
    readonly ips: readonly string[]
  }
}

/** Null: what a node holds is no credential. */
const orderIn = (all: LyingStepCa, { body }: Asked): OrderThere | null => {
  const { csr, ott, notAfter } = body as { readonly csr: string; readonly ott: string; readonly notAfter: string }
  const [header, { muster }] = ott
    .split('.')
    .slice(0, 2)
    .map((part) => JSON.parse(Buffer.from(part, 'base64url').toString())) as [{ x5c?: string[] }, Claims]
  const [credential] = header.x5c ?? []
  const presented = credential === undefined ? null : parseCertificate(Buffer.from(credential, 'base64'))
  if (presented?.kind === 'certificate' && presented.uris.length > 0) return null
  const request = parseCsr(csr)
  const serial = serialOfDecimal(muster.serial)
  if (request.kind !== 'csr' || serial === null) throw new Error('the plane has sent no order')
  const order = placeOrder({
    ...{ id: muster.order, usage: 'client', publicKey: request.spki, aiaUrl: null, cdpUrl: null },
    subject: { cn: muster.subject.cn, o: muster.subject.o[0] ?? '', ou: muster.subject.ou[0] ?? '' },
    ...{ uriSans: muster.uris, dnsSans: muster.dnsNames, ipSans: muster.ips },
    ...{ issuedAtMs: Date.now(), lifetimeMs: Date.parse(notAfter) - Date.now() },
    for: { kind: 'node', node: muster.subject.cn, epoch: 1 },
  })
  const { domainCa, issuing } = all.authorities
  const signed = ({ order: other = {}, spec: changed, serial: number = serial, ...made }: Instead = {}) => {
    const { by = issuing, chain = [issuing, domainCa] } = made
    const spec = leafSpec(placeOrder({ ...order, ...other }), by.certificate, Buffer.from(number, 'hex'))
    const leaf = hold(by.key, changed?.(spec) ?? spec, by.key)
    all.signed.push({ serial: number, to: order.subject.cn })
    const certChain = [leaf, ...chain].map(({ certificate }) => toPem('CERTIFICATE', certificate.der))
    return says(201, { crt: certChain[0], certChain })
  }
  return { order, serial, signed }
}
