// What the plane hands out for a program is checked before it replaces anything. All functions here are pure.

import { backdatingMs } from '#pki/authority-certificates.ts'
import type { ParsedCertificate } from '#pki/parse-certificate.ts'
import { fromPem, toPem } from '#pki/pem.ts'
import { verifyIssuedChain } from '#pki/verify-chain.ts'
import { sameBytes } from '#platform/bytes.ts'
import {
  longestProgramList,
  mostProgramLists,
  mostProgramRoots,
  type ConfigOutput,
  type ProgramLists,
  type ProgramResponse,
} from '#wire/programs/programs-api.ts'
import { checkLeaf, checkList, isListAhead, type ProgramOf, type Unusable } from './check-generation.ts'
import type { LeafRequest, ProgramLeaf } from './leaf-store.ts'
import { listsIn, type ProgramLedger } from './list-store.ts'

const unusable = (why: string): Unusable => ({ kind: 'unusable', why })

/** Certificates know seconds. */
const slackMs = 1_000
/** The clocks of outside issuers, planes and agents may be apart. */
const outsideSlackMs = 5 * 60_000

export type GivenLeaf = {
  readonly kind: 'leaf'
  readonly leaf: ProgramLeaf
  readonly roots: readonly string[]
  readonly outsideRoots: readonly string[]
}

export const leafFrom = (
  { keyPem, csrPem: _sent, ...terms }: LeafRequest,
  { lifetime_ms: lifetimeMs }: Pick<ConfigOutput, 'lifetime_ms'>,
  answer: Pick<ProgramResponse, 'certificate_chain' | 'roots' | 'outside_roots'>,
  of: ProgramOf,
  nowMs: number,
): GivenLeaf | Unusable => {
  const { certificate_chain: chainPem, roots } = answer
  const trusted = rootsFrom(roots, nowMs)
  if (trusted.kind === 'unusable') return trusted
  const outsideRoots = soundRoots(answer.outside_roots, nowMs)
  const ders = [
    ...trusted.roots.map(({ der }) => der),
    ...outsideRoots.flatMap((pem) => fromPem('CERTIFICATE', pem) ?? []),
  ]
  const checked = checkLeaf({ keyPem, chainPem, roots: ders, nowMs }, of)
  if (checked.kind === 'unusable') return checked
  const { leaf } = checked
  if (leaf.keyType !== terms.keyType) return unusable(`the certificate has a key of ${leaf.keyType}`)
  const names = namesIn(leaf)
  if (names.join('\n') !== terms.names.join('\n'))
    return unusable(
      `the certificate is for ${names.join(', ') || 'no names'}, not for ${terms.names.join(', ') || 'none'}`,
    )
  if (!leaf.keyUsage.includes('digitalSignature')) return unusable('the certificate may not be used for TLS')
  const usages = [...leaf.extendedKeyUsage].sort().join(' and ')
  if (usages !== usagesOf[terms.usage]) return unusable(`the certificate is for ${usages || 'anything'}`)
  const root = checked.authorities.at(-1)
  const isOurs = trusted.roots.some(({ der }) => root !== undefined && sameBytes(der, root.der))
  const datedMs = leaf.notBeforeMs + backdatingMs
  // An outside issuer dates the beginning by its own clock, and further back: the plane has compared the end alone with the order.
  const issuedAtMs = Math.min(isOurs ? datedMs : Math.max(datedMs, nowMs), leaf.notAfterMs)
  if (leaf.notAfterMs - issuedAtMs > lifetimeMs + (isOurs ? slackMs : outsideSlackMs))
    return unusable('the certificate lives longer than it may')
  const { serial, notAfterMs } = leaf
  return { kind: 'leaf', leaf: { ...terms, serial, issuedAtMs, notAfterMs, keyPem, chainPem }, roots, outsideRoots }
}

const usagesOf = { client: 'clientAuth', server: 'serverAuth', both: 'clientAuth and serverAuth' } as const

/** As a configuration names them, sorted. */
const namesIn = ({ dnsNames, ips }: ParsedCertificate): readonly string[] =>
  [...dnsNames.map((name) => `dns:${name}`), ...ips.map((ip) => `ip:${ip}`)].sort()

type GivenRoots = { readonly kind: 'roots'; readonly roots: readonly ParsedCertificate[] }

/** Each is an authority that has signed itself. */
const rootsFrom = (pems: readonly string[], nowMs: number): GivenRoots | Unusable => {
  if (pems.length === 0 || pems.length > mostProgramRoots) return unusable('no programs roots, or too many')
  const roots: ParsedCertificate[] = []
  for (const pem of pems) {
    const der = fromPem('CERTIFICATE', pem)
    if (der === null) return unusable('a programs root is not one PEM block')
    const verdict = verifyIssuedChain({ chain: [der], roots: [der], nowMs })
    if (verdict.kind === 'untrusted') return unusable(`a programs root: ${verdict.why}`)
    const [root] = verdict.path
    if (root !== undefined) roots.push(root)
  }
  return { kind: 'roots', roots }
}

/** Another issuer of the domain may be about to end, and must not keep this output from its leaf: what cannot be used is left out. */
const soundRoots = (pems: readonly string[] | undefined, nowMs: number): readonly string[] =>
  (pems ?? []).filter((pem) => {
    const der = fromPem('CERTIFICATE', pem)
    return der !== null && verifyIssuedChain({ chain: [der], roots: [der], nowMs }).kind === 'trusted'
  })

export type GivenLists = {
  readonly kind: 'lists'
  readonly ledger: Pick<ProgramLedger, 'roots' | 'outsideRoots' | 'authorities' | 'lists'>
  /** What was left out, in words. */
  readonly skipped: readonly string[]
}

/**
 * What is known of the authorities above programs once this answer was received. A list is never replaced by one with a lower
 * number, and one of an authority above a leaf at hand (`chains`) stays until there is another.
 */
export const listsFrom = (
  have: Pick<ProgramLedger, 'lists'>,
  answer: ProgramLists,
  chains: readonly ParsedCertificate[],
  nowMs: number,
): GivenLists | Unusable => {
  const given = rootsFrom(answer.roots, nowMs)
  if (given.kind === 'unusable') return given
  if (answer.lists.length > mostProgramLists) return unusable('too many revocation lists')
  const rootDers = given.roots.map(({ der }) => der)
  const skipped: string[] = []
  const authorities = answer.lists.flatMap(({ certificate, issuer }): ParsedCertificate[] => {
    const der = certificate === undefined ? null : fromPem('CERTIFICATE', certificate)
    if (der === null) return []
    const verdict = verifyIssuedChain({ chain: [der], roots: rootDers, nowMs })
    if (verdict.kind === 'untrusted') skipped.push(`authority ${issuer}: ${verdict.why}`)
    return verdict.kind === 'untrusted' ? [] : verdict.path.slice(0, 1)
  })
  const known = [...given.roots, ...authorities, ...chains]
  const kept = listsIn(have.lists).filter((list) => !isListAhead(list, nowMs))
  const named = new Map(kept.map(({ pem, authorityKeyId, number }) => [authorityKeyId, { pem, number }]))
  const lists = new Map([...named].filter(([id]) => known.some(({ subjectKeyId }) => subjectKeyId === id)))
  for (const { issuer, list: pem } of answer.lists) {
    if (pem.length > longestProgramList) {
      skipped.push(`list of ${issuer}: it has ${pem.length} bytes`)
      continue
    }
    const checked = checkList(pem, known, nowMs)
    if (checked.kind === 'unusable') {
      skipped.push(`list of ${issuer}: ${checked.why}`)
      continue
    }
    const { authorityKeyId, number } = checked.list
    const before = lists.get(authorityKeyId)
    if (before !== undefined && number < before.number)
      skipped.push(`list of ${issuer}: number ${number} is older than ${before.number}`)
    if (before === undefined || number > before.number) lists.set(authorityKeyId, { pem, number })
  }
  return {
    kind: 'lists',
    ledger: {
      roots: answer.roots,
      outsideRoots: [...soundRoots(answer.outside_roots, nowMs)],
      authorities: authorities.map(({ der }) => toPem('CERTIFICATE', der)),
      lists: [...lists.values()].map(({ pem }) => pem),
    },
    skipped,
  }
}
