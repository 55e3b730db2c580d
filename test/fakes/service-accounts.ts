// A cluster that gives its pods service-account tokens, shaped as those of Kubernetes, and publishes the keys that verify them.

import { createHmac, generateKeyPairSync, randomUUID, sign, type KeyObject } from 'node:crypto'
import type { JwtAlgorithm } from '#pki/jwt.ts'

export type TokenWish = {
  /** The uid of the pod; null: the token names none. */
  readonly pod?: string | null
  readonly claims?: Readonly<Record<string, unknown>>
  readonly header?: Readonly<Record<string, unknown>>
  readonly nowMs?: number
  readonly livesMs?: number
}

export type Cluster = {
  readonly iss: string
  readonly aud: string
  readonly sub: string
  readonly keyId: string
  jwks(): string
  token(wish?: TokenWish): string
  /** As an attacker would make one who knows the public key only. */
  unsigned(wish?: TokenWish): string
  /** With the public key, as it is published, for a secret. */
  confused(wish?: TokenWish): string
  /** From now on another key signs, which its key set has as well. */
  rotate(): void
}

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

type ClusterKey = { readonly keyId: string; readonly privateKey: KeyObject; readonly publicKey: KeyObject }

const keyOf = (algorithm: JwtAlgorithm): ClusterKey => ({
  keyId: randomUUID(),
  ...(algorithm === 'RS256'
    ? generateKeyPairSync('rsa', { modulusLength: 2048 })
    : generateKeyPairSync('ec', { namedCurve: 'P-256' })),
})

export const cluster = (algorithm: JwtAlgorithm = 'ES256', iss = 'https://kubernetes.default.svc'): Cluster => {
  const aud = 'muster'
  const sub = 'system:serviceaccount:provisioning:worker'
  const keys = [keyOf(algorithm)]
  const newest = (): ClusterKey => keys.at(-1) as ClusterKey

  const parts = (wish: TokenWish, alg: string): string => {
    const { pod = randomUUID(), nowMs = Date.now(), livesMs = 3_600_000 } = wish
    const iat = Math.floor(nowMs / 1000)
    const named = pod === null ? {} : { pod: { name: 'worker-0', uid: pod } }
    const claims = {
      ...{ aud: [aud], exp: iat + livesMs / 1000, iat, iss, jti: randomUUID(), nbf: iat, sub },
      'kubernetes.io': { namespace: 'provisioning', serviceaccount: { name: 'worker', uid: randomUUID() }, ...named },
      ...wish.claims,
    }
    return `${encode({ alg, kid: newest().keyId, ...wish.header })}.${encode(claims)}`
  }
  const signed = (text: string): string => {
    const key = newest().privateKey
    const how = algorithm === 'RS256' ? key : ({ key, dsaEncoding: 'ieee-p1363' } as const)
    return `${text}.${sign('sha256', Buffer.from(text), how).toString('base64url')}`
  }
  return {
    ...{ iss, aud, sub },
    get keyId() {
      return newest().keyId
    },
    jwks: () =>
      JSON.stringify({
        keys: keys.map(({ keyId: kid, publicKey }) => ({
          ...publicKey.export({ format: 'jwk' }),
          ...{ use: 'sig', alg: algorithm, kid },
        })),
      }),
    token: (wish = {}) => signed(parts(wish, algorithm)),
    unsigned: (wish = {}) => `${parts(wish, 'none')}.`,
    confused(wish = {}) {
      const text = parts(wish, 'HS256')
      const secret = newest().publicKey.export({ type: 'spki', format: 'pem' })
      return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`
    },
    rotate: () => void keys.push(keyOf(algorithm)),
  }
}
