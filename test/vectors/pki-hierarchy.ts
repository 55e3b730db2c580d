// A whole hierarchy of certificates, as the plane would make it.

import { defaultDomainSettings } from '#domain/core/domain-settings.ts'
import { orderNodeCertificate } from '#domain/identity/node-certificate.ts'
import { type OrderDraft, placeOrder, type SigningOrder } from '#domain/core/certificate.ts'
import type { Profile } from '#domain/core/profile.ts'
import {
  domainCaSpec,
  intermediateLifetimeMs,
  issuingSpec,
  leafSpec,
  rootLifetimeMs,
  rootSpec,
} from '#pki/authority-certificates.ts'
import { buildCertificate, type CertificateSpec } from '#pki/certificate.ts'
import { generateKey, type KeyType, type PrivateKey, spkiHash } from '#pki/keys.ts'
import { type ParsedCertificate, parseCertificate } from '#pki/parse-certificate.ts'

export const nowMs = Date.UTC(2026, 5, 1, 12, 0, 0)
export const day = 86_400_000
export const host = 'plane.example.test'

export type Held = { readonly key: PrivateKey; readonly certificate: ParsedCertificate }

export type Hierarchy = { readonly root: Held; readonly domainCa: Held; readonly issuing: Held }

/** Root, domain CA and issuing CA, all with keys of one type. */
export const hierarchy = (type: KeyType, issuedAtMs: number): Hierarchy => {
  const rootKey = generateKey(type)
  const root = hold(rootKey, rootSpec({ ...authority(rootKey, rootLifetimeMs, issuedAtMs), pathLen: 2 }), rootKey)
  const domainKey = generateKey(type)
  const domainCa = hold(
    domainKey,
    domainCaSpec(authority(domainKey, intermediateLifetimeMs, issuedAtMs), root.certificate),
    rootKey,
  )
  return { root, domainCa, issuing: issuingCa(type, domainCa, issuedAtMs) }
}

export const issuingCa = (type: KeyType, parent: Held, issuedAtMs: number): Held => {
  const key = generateKey(type)
  const spec = issuingSpec(authority(key, intermediateLifetimeMs, issuedAtMs), parent.certificate)
  return hold(key, spec, parent.key)
}

export const authority = (key: PrivateKey, lifetimeMs: number, issuedAtMs: number) => ({
  domain: 'example.test',
  spki: key.spki,
  serial: serial(),
  nowMs: issuedAtMs,
  lifetimeMs,
})

export const serial = (): Uint8Array => crypto.getRandomValues(new Uint8Array(16))

export const hold = (key: PrivateKey, spec: CertificateSpec, signer: PrivateKey): Held => ({
  key,
  certificate: parsed(buildCertificate(spec, signer)),
})

export const parsed = (der: Uint8Array): ParsedCertificate => {
  const certificate = parseCertificate(der)
  if (certificate.kind === 'malformed') throw new Error(certificate.why)
  return certificate
}

const draft = {
  id: 'order-1',
  uriSans: [],
  dnsSans: [],
  ipSans: [],
  issuedAtMs: nowMs,
  aiaUrl: null,
  cdpUrl: null,
} as const satisfies Partial<OrderDraft>

export const nodeOrder = (key: PrivateKey, change: Partial<OrderDraft>): SigningOrder =>
  placeOrder({
    ...draft,
    subject: { cn: 'node-gpu-001', o: 'example.test', ou: 'nodes' },
    uriSans: ['spiffe://example.test/node/gpu-001'],
    usage: 'client',
    publicKey: key.spki,
    lifetimeMs: day,
    for: { kind: 'node', node: 'gpu-001', epoch: 1 },
    ...change,
  })

/** As the plane orders it for a node of this profile. */
export const profileOrder = (profile: Profile, key: PrivateKey): SigningOrder => {
  const ordered = orderNodeCertificate({
    id: draft.id,
    node: 'gpu-001',
    epoch: 1,
    profile,
    domain: defaultDomainSettings('example.test'),
    key: { kind: 'key', keyType: key.type, spki: key.spki, spkiHash: spkiHash(key.spki) },
    nowMs,
  })
  if (ordered.kind === 'refused') throw new Error(`${profile.name}: ${ordered.code}`)
  return ordered.order
}

export const workerOrder = (key: PrivateKey): SigningOrder =>
  nodeOrder(key, {
    subject: { cn: 'worker-provisioning-7', o: 'example.test', ou: 'workers' },
    uriSans: [],
  })

export const serverOrder = (key: PrivateKey, change: Partial<OrderDraft>): SigningOrder =>
  placeOrder({
    ...draft,
    subject: { cn: host, o: 'example.test', ou: 'control-plane' },
    dnsSans: [host, '*.internal.example.test', 'localhost'],
    ipSans: ['127.0.0.1', '::1'],
    usage: 'server',
    publicKey: key.spki,
    lifetimeMs: 90 * day,
    for: { kind: 'server' },
    ...change,
  })

export const leaf = (key: PrivateKey, order: SigningOrder, issuer: Held): Held =>
  hold(key, leafSpec(order, issuer.certificate, serial()), issuer.key)
