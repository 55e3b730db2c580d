// The one-time tokens that a step-ca takes orders and revocations by. Each is made when it is sent, has an id of its own, and is good for one
// minute and one request.

import { hash } from 'node:crypto'
import type { SigningOrder } from '#domain/core/certificate.ts'
import { decimalSerial } from '#domain/issuers/serial.ts'
import { makeJwt } from '#pki/make-jwt.ts'
import type { RequestNames } from '#pki/csr.ts'
import type { Signer } from '#pki/signer.ts'
import type { Clock } from '#platform/clock.ts'
import type { Random } from '#platform/random.ts'

/** A provisioner of a step-ca, and what its tokens are signed with. */
export type Provisioner = {
  readonly name: string
  readonly key: Signer
  /** JWK: the id of the key. X5C: the certificate of the key, DER, and those between it and the root. */
  readonly known:
    { readonly by: 'key'; readonly id: string } | { readonly by: 'chain'; readonly chain: readonly Uint8Array[] }
}

/** Names that step-ca writes into addresses as they are. */
export const provisionerName = /^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$/

export type Minting = {
  readonly clock: Pick<Clock, 'nowMs'>
  readonly random: Pick<Random, 'bytes'>
  /** `https://HOST:PORT`, as the server is called. */
  readonly origin: string
  /** SHA-256 of its root certificate, hex. */
  readonly rootHash: string
}

export type Ordered = {
  readonly order: SigningOrder
  /** Hex. */
  readonly serial: string
  /** DER. */
  readonly request: Uint8Array
  readonly names: RequestNames
}

const lifetimeS = 60

export const signToken = (minting: Minting, by: Provisioner, ordered: Ordered): string | Promise<string> =>
  token(minting, by, 'sign', {
    // Step-ca compares it with the common name of the request, if that has one, and with nothing else: our template reads only `muster`.
    sub: ordered.names.commonName || ordered.order.subject.cn || ordered.order.id,
    sha: minting.rootHash,
    cnf: { 'x5rt#S256': hash('sha256', ordered.request, 'base64url') },
    muster: orderClaim(ordered),
  })

export const revokeToken = (minting: Minting, by: Provisioner, serial: string): string | Promise<string> =>
  token(minting, by, 'revoke', { sub: decimalSerial(serial), sha: minting.rootHash })

/** What the template makes the certificate of (docs/issuers/STEP-CA.md). */
const orderClaim = ({ order: { id, subject, uriSans, dnsSans, ipSans, usage }, serial }: Ordered) => ({
  order: id,
  serial: decimalSerial(serial),
  subject: { cn: subject.cn, o: listOf(subject.o), ou: listOf(subject.ou) },
  uris: uriSans,
  dnsNames: dnsSans,
  ips: ipSans,
  usage: usage === 'both' ? ['clientAuth', 'serverAuth'] : [`${usage}Auth`],
})

/** An empty text would become an empty part of the name. */
const listOf = (text: string): readonly string[] => (text === '' ? [] : [text])

const token = (
  { clock, random, origin }: Minting,
  { name, key, known }: Provisioner,
  call: 'sign' | 'revoke',
  claims: object,
): string | Promise<string> => {
  const nowS = Math.floor(clock.nowMs() / 1000)
  const header =
    known.by === 'key'
      ? { kid: known.id }
      : { x5c: known.chain.map((certificate) => Buffer.from(certificate).toString('base64')) }
  return makeJwt(key, header, {
    iss: name,
    aud: `${origin}/1.0/${call}${known.by === 'key' ? '' : `#x5c/${name}`}`,
    jti: random.bytes(16).toString('hex'),
    iat: nowS,
    nbf: nowS,
    exp: nowS + lifetimeS,
    ...claims,
  })
}
