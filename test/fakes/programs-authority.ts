// The authorities above programs, as a plane would have them: a root of their own, an issuing CA, leaves and lists.

import { rootSpec, issuingSpec } from '#pki/authority-certificates.ts'
import { buildCertificate } from '#pki/certificate.ts'
import { buildCrl, type RevokedEntry } from '#pki/crl.ts'
import { makeCsr, parseCsr } from '#pki/csr.ts'
import { wholeSecondMs } from '#pki/der-time.ts'
import { generateKey } from '#pki/keys.ts'
import { toPem } from '#pki/pem.ts'
import { isoTime } from '#platform/clock.ts'
import type { ConfigOutput, ProgramLists, ProgramResponse } from '#wire/programs/programs-api.ts'
import { authority, hold, parsed, serial, type Held } from '../vectors/pki-hierarchy.ts'

const day = 86_400_000

export const certificatePem = ({ certificate }: Held): string => toPem('CERTIFICATE', certificate.der)

export type ProgramsAuthority = {
  readonly root: Held
  issuing: Held
  /** Grows with every call of `lists` that is asked to renew them. */
  number: number
  revoked: RevokedEntry[]
  /** As the plane answers; `change` takes the place of what the leaf would say. */
  leafFor(csrPem: string, output: ConfigOutput, change?: Partial<LeafWish>): ProgramResponse
  /** For a new key, as a helper gets it. */
  leaf(change?: Partial<LeafWish>): { readonly key: string; readonly chain: string }
  lists(number?: number): ProgramLists
  /** Of the issuing CA and of the root, PEM. `baseNumber`: the first only adds to the list of that number. */
  listPems(number: number, baseNumber?: number | null, aheadMs?: number): [issuing: string, root: string]
  anotherIssuing(): Held
}

export type LeafWish = {
  readonly uris: readonly string[]
  readonly lifetimeMs: number
  readonly names: readonly string[]
  readonly usage: ConfigOutput['usage']
  readonly issuedAtMs: number
  /** An authority in place of a leaf. */
  readonly ca: boolean
}

export const outputOf = (change: Partial<ConfigOutput> = {}): ConfigOutput => ({
  name: 'web',
  key_type: 'p256',
  lifetime_ms: day,
  usage: 'server',
  names: ['dns:web.example.test', 'ip:10.0.0.7'],
  files: { directory: null, owner: null, group: null, key_mode: 0o600, combined: true, pkcs12: true, reload: null },
  ...change,
})

export const programsAuthority = (nowMs: number): ProgramsAuthority => {
  const rootKey = generateKey('p256')
  const root = hold(rootKey, rootSpec({ ...authority(rootKey, 3650 * day, nowMs), pathLen: 1 }), rootKey)
  const makeIssuing = (): Held => {
    const key = generateKey('p256')
    return hold(key, issuingSpec(authority(key, 365 * day, nowMs), root.certificate), rootKey)
  }
  const listOf = (
    held: Held,
    role: 'root' | 'issuing',
    number: number,
    baseNumber: number | null = null,
    aheadMs = 0,
  ): ProgramLists['lists'][number] => {
    const thisUpdateMs = wholeSecondMs(Date.now() + aheadMs - 1_000)
    const nextUpdateMs = thisUpdateMs + 3 * day
    const { certificate } = held
    const authorityKeyId = certificate.subjectKeyId ?? ''
    const spec = { authorityKeyId, number, baseNumber, thisUpdateMs, nextUpdateMs, freshestUrl: null }
    const entries = role === 'issuing' ? it.revoked : []
    const der = buildCrl({ ...spec, issuer: certificate.subjectName, entries }, held.key)
    return {
      issuer: authorityKeyId,
      role,
      number,
      next_update: isoTime(nextUpdateMs),
      list: toPem('X509 CRL', der),
      ...(role === 'issuing' ? { certificate: certificatePem(held) } : {}),
    }
  }
  const all: Held[] = [makeIssuing()]
  const it: ProgramsAuthority = {
    root,
    issuing: all[0] ?? root,
    number: 1,
    revoked: [],
    anotherIssuing: () => {
      const made = makeIssuing()
      all.push(made)
      return made
    },
    leafFor: (csrPem, output, change = {}) => {
      const csr = parseCsr(csrPem)
      if (csr.kind === 'malformed') throw new Error(csr.why)
      const wish: LeafWish = {
        uris: [`spiffe://example.test/node/gpu-001/program/${output.name}`],
        lifetimeMs: output.lifetime_ms,
        names: output.names,
        usage: output.usage,
        issuedAtMs: Date.now(),
        ca: false,
        ...change,
      }
      const { issuing } = it
      const named = (kind: string): string[] =>
        wish.names.filter((name) => name.startsWith(kind)).map((name) => name.slice(kind.length))
      const usages = { client: ['clientAuth'], server: ['serverAuth'], both: ['serverAuth', 'clientAuth'] } as const
      const der = buildCertificate(
        {
          serial: serial(),
          subject: { cn: output.name, o: 'example.test', ou: 'programs' },
          issuer: issuing.certificate.subjectName,
          notBeforeMs: wholeSecondMs(wish.issuedAtMs - 60_000),
          notAfterMs: wholeSecondMs(wish.issuedAtMs + wish.lifetimeMs),
          spki: csr.spki,
          extensions: {
            ca: wish.ca ? { pathLen: null } : null,
            keyUsage: ['digitalSignature'],
            extendedKeyUsage: usages[wish.usage],
            uris: wish.uris,
            dnsNames: named('dns:'),
            ips: named('ip:'),
            authorityKeyId: issuing.certificate.subjectKeyId ?? '',
            aiaUrl: null,
            cdpUrl: null,
          },
        },
        issuing.key,
      )
      return {
        certificate_chain: toPem('CERTIFICATE', parsed(der).der) + certificatePem(issuing),
        roots: [certificatePem(root)],
        server_time: isoTime(Date.now()),
      }
    },
    leaf: (change = {}) => {
      const key = generateKey('p256')
      const { certificate_chain: chain } = it.leafFor(makeCsr(key, 'program'), outputOf(), change)
      return { key: key.pkcs8Pem(), chain }
    },
    lists: (number = it.number) => ({
      roots: [certificatePem(root)],
      lists: [listOf(root, 'root', number), ...all.map((held) => listOf(held, 'issuing', number))],
    }),
    listPems: (number, baseNumber = null, aheadMs = 0) => [
      listOf(it.issuing, 'issuing', number, baseNumber, aheadMs).list,
      listOf(root, 'root', number, null, aheadMs).list,
    ],
  }
  return it
}
