// Rows about outside issuers, for tests.

import type { IssuerRevocation } from '#domain/issuers/issuer-revocation.ts'
import { intend, type Order } from '#domain/issuers/order.ts'
import type { OutsideIssuer } from '#domain/issuers/outside-issuer.ts'

const atMs = 1_700_000_000_000

export const outsideIssuer = (changes: Partial<OutsideIssuer> = {}): OutsideIssuer => ({
  id: 'c0ffee',
  name: 'corp',
  url: 'https://ca.corp.example',
  serverRoots: ['PEM'],
  roots: ['1'.repeat(40)],
  access: { kind: 'step-ca', provisioner: 'muster', renewalProvisioner: 'muster-renewals' },
  secrets: { key: 'e1', names: ['provisioner_key'] },
  abilities: {
    ...{ testedAtMs: atMs, takesSerial: true, revokes: true, lists: false, longestMs: 90 * 86_400_000 },
  },
  state: { kind: 'enabled' },
  addedAtMs: atMs,
  addedBy: 'operator:carol',
  ...changes,
})

export const signingOrder = (changes: Partial<Order> = {}): Order => ({
  ...intend({
    id: 'order-1',
    issuer: 'c0ffee',
    subject: { kind: 'node', node: 'gpu-001', epoch: 1 },
    spki: 'a'.repeat(64),
    request: 'AAAA',
    issuedAtMs: atMs,
    lifetimeMs: 86_400_000,
    token: null,
    holder: 1,
    serial: 'a9',
    nowMs: atMs,
  }),
  ...changes,
})

export const revocationThere = (serial: string, changes: Partial<IssuerRevocation> = {}): IssuerRevocation => ({
  issuer: 'c0ffee',
  serial,
  reason: 'unspecified',
  why: 'orphan',
  order: 'order-1',
  receipt: null,
  atMs,
  untilMs: atMs + 86_400_000,
  state: { kind: 'waiting' },
  ...changes,
})
