import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { GivenAuthority } from '#domain/issuers/change-issuer.ts'
import type { Refusal } from '#domain/core/refusal.ts'
import { buildCertificate } from '#pki/certificate.ts'
import { generateKey, keyId, type PrivateKey } from '#pki/keys.ts'
import { toPem } from '#pki/pem.ts'
import { readAuthorities } from './given-authorities.ts'

const nowMs = Date.UTC(2026, 5, 1)

type Ca = { readonly cn: string; readonly key: PrivateKey }
const ca = (cn: string): Ca => ({ cn, key: generateKey('p256') })

const signed = (of: Ca, by: Ca): string =>
  toPem(
    'CERTIFICATE',
    buildCertificate(
      {
        serial: Buffer.from('11', 'hex'),
        subject: { cn: of.cn, o: null, ou: null },
        issuer: { cn: by.cn, o: null, ou: null },
        notBeforeMs: nowMs,
        notAfterMs: nowMs + 86_400_000,
        spki: of.key.spki,
        extensions: {
          ...{ ca: { pathLen: null }, keyUsage: ['keyCertSign', 'cRLSign'], extendedKeyUsage: [] },
          ...{ uris: [], dnsNames: [], ips: [], authorityKeyId: keyId(by.key.spki), aiaUrl: null, cdpUrl: null },
        },
      },
      by.key,
    ),
  )

const [root, one, other] = [ca('root'), ca('one'), ca('other')]

const namesOf = (read: readonly GivenAuthority[] | Refusal): readonly string[] | string =>
  'kind' in read ? (read.detail ?? '') : read.map(({ id, parent }) => `${id.slice(0, 6)} ${parent.slice(0, 6)}`)

test('authorities are read with what has signed them, and the same certificate twice is one', () => {
  const pems = [signed(one, root), signed(root, root)]
  const [id, above] = [keyId(one.key.spki).slice(0, 6), keyId(root.key.spki).slice(0, 6)]
  assert.deepEqual(namesOf(readAuthorities([...pems, ...pems])), [`${id} ${above}`, `${above} ${above}`])
})

test('two certificates with one key are refused: an authority has one on record', () => {
  assert.match(
    String(namesOf(readAuthorities([signed(root, root), signed(other, other), signed(root, other)]))),
    /two certificates have the key/,
  )
})

test('authorities that have signed each other lead to no root', () => {
  assert.match(
    String(namesOf(readAuthorities([signed(root, root), signed(one, other), signed(other, one)]))),
    /does not lead to a self-signed certificate/,
  )
})
