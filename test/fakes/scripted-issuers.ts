// Outside issuers that do what a test says: for slots, breakers, the outbox and the calls of operators. What real ones do is tested with real
// ones.

import { toPem } from '#pki/pem.ts'
import { generateKey } from '#pki/keys.ts'
import { buildCertificate } from '#pki/certificate.ts'
import { keyId } from '#pki/spki.ts'
import type { IssuerKinds, SignerRequest } from '#plane/issuers/open-outside-issuers.ts'
import type { LoginCondition } from '#plane/outside/vault-login.ts'
import type { SettingFault } from '#plane/issuers/outside-signer.ts'

export type ScriptedIssuers = {
  readonly kinds: IssuerKinds
  /** What signers were made of, oldest first. */
  readonly made: SignerRequest[]
  /** How many of them were closed. */
  closed(): number
  /** `ISSUER SERIAL`, in the order in which they were revoked. */
  readonly revoked: string[]
  /** Serials whose revocation fails, with the reason. */
  readonly failing: Map<string, string | Error>
  /** What the next tests find. */
  readonly faults: SettingFault[]
  /** Of every signer. */
  login: LoginCondition | null
  /** Runs before each revocation. */
  onRevoke: () => Promise<void>
}

export const scriptedIssuers = (): ScriptedIssuers => {
  let closed = 0
  const all: ScriptedIssuers = {
    made: [],
    closed: () => closed,
    revoked: [],
    failing: new Map(),
    faults: [],
    login: null,
    onRevoke: async () => {},
    kinds: {
      unfit: (_access, secrets) =>
        Object.entries(secrets).flatMap(([name, text]) => (text === 'broken' ? [{ name, why: 'not a key' }] : []))[0] ??
        null,
      make: ({ kind }) => (kind === 'step-ca' ? { renewal_root: 'the root of renewals' } : {}),
      renew: (_access, secrets) => {
        const { renewal_due: due, ...others } = secrets
        return due === undefined ? null : { ...others, renewal_key: 'another one' }
      },
      open(request) {
        all.made.push(request)
        const { issuer, secrets } = request
        return {
          abilities: { takesSerial: issuer.access.kind === 'step-ca', revokes: true, lists: false },
          aheadMs: null,
          renewalRoot: secrets['renewal_root'] ?? null,
          sign: () => Promise.reject(new Error('nothing is signed here')),
          async revoke(serial) {
            await all.onRevoke()
            const why = all.failing.get(serial)
            if (why !== undefined) throw why instanceof Error ? why : new Error(why)
            all.revoked.push(`${issuer.name} ${serial}`)
            return 'revoked'
          },
          find: async () => null,
          test: async () => [...all.faults],
          login: () => all.login,
          close: () => void closed++,
        }
      },
    },
  }
  return all
}

/** A root that says of itself what roots of outside issuers do; PEM. */
export const outsideRoot = (cn: string, nowMs: number): { readonly pem: string; readonly id: string } => {
  const key = generateKey('p256')
  const name = { cn, o: null, ou: null }
  const id = keyId(key.spki)
  const der = buildCertificate(
    {
      serial: Buffer.from('01', 'hex'),
      subject: name,
      issuer: name,
      notBeforeMs: nowMs - 60_000,
      notAfterMs: nowMs + 3650 * 86_400_000,
      spki: key.spki,
      extensions: {
        ca: { pathLen: 1 },
        keyUsage: ['keyCertSign', 'cRLSign'],
        extendedKeyUsage: [],
        uris: [],
        dnsNames: [],
        ips: [],
        authorityKeyId: id,
        aiaUrl: null,
        cdpUrl: null,
      },
    },
    key,
  )
  return { pem: toPem('CERTIFICATE', der), id }
}
