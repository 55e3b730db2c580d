// One generation of an output from what the agent has: its leaf, the roots, and a list for every authority above it. All functions here are pure.

import { sameBytes, sha256Hex } from '#platform/bytes.ts'
import type { ParsedCertificate } from '#pki/parse-certificate.ts'
import { parseCertificate } from '#pki/parse-certificate.ts'
import { allFromPem, fromPem, toPem } from '#pki/pem.ts'
import { verifyIssuedChain } from '#pki/verify-chain.ts'
import { mostProgramLists, type ConfigOutput } from '#wire/programs/programs-api.ts'
import type { ProgramLeaf } from './leaf-store.ts'
import type { KnownList } from './list-store.ts'
import type { Generation } from './publisher.ts'

export type Known = {
  /** PEM, one each. */
  readonly roots: readonly string[]
  /** Of outside issuers; no list of theirs is waited for. */
  readonly outsideRoots: readonly string[]
  readonly authorities: readonly string[]
  readonly lists: readonly KnownList[]
}

export type Built =
  | {
      readonly kind: 'built'
      readonly generation: Generation
      /** Differs whenever a file of it does. */
      readonly mark: string
      /** Differs whenever its program has to read the files again. Newer lists that revoke the same are no reason. */
      readonly loadMark: string
      /** When the lists that its program has loaded are half through, so that it reads newer ones well before they end. */
      readonly loadAgainAtMs: number
    }
  /** There is nothing to write yet, or nothing that a program could use. */
  | { readonly kind: 'missing'; readonly why: string }

export const buildGeneration = (output: ConfigOutput, leaf: ProgramLeaf, known: Known, nowMs: number): Built => {
  const above = authoritiesAbove(leaf, known, nowMs)
  if (above.kind === 'missing') return above
  const listOf = (id: string | null): KnownList | undefined =>
    known.lists.find(({ authorityKeyId }) => authorityKeyId === id)
  const without = above.listed.find(({ subjectKeyId }) => listOf(subjectKeyId) === undefined)
  if (without !== undefined)
    return { kind: 'missing', why: `the revocation list of ${without.subject} is not here yet` }
  const isAbove = (id: string | null): boolean => above.listed.some(({ subjectKeyId }) => subjectKeyId === id)
  const others = certificatesIn([...known.authorities, ...known.roots]).filter(
    ({ subjectKeyId }) => !isAbove(subjectKeyId) && listOf(subjectKeyId) !== undefined,
  )
  const inOrder = [...above.listed, ...others]
    .flatMap(({ subjectKeyId }) => listOf(subjectKeyId) ?? [])
    .slice(0, mostProgramLists)
  // Programs that check lists start with none that is empty.
  if (inOrder.length === 0) return { kind: 'missing', why: 'no revocation list is here yet' }
  const generation: Generation = {
    output,
    keyPem: leaf.keyPem,
    chainPem: leaf.chainPem,
    rootsPem: [...known.roots, ...known.outsideRoots].join(''),
    lists: inOrder.map(({ pem }) => pem),
    authoritiesPem: others.map(({ der }) => toPem('CERTIFICATE', der)).join(''),
  }
  const { files } = output
  const { chainPem, rootsPem } = generation
  return {
    kind: 'built',
    generation,
    mark: markOf(files, chainPem, rootsPem, generation.lists),
    loadMark: markOf(files, chainPem, rootsPem, inOrder.map(revokedBy)),
    loadAgainAtMs: Math.min(...inOrder.map((list) => (list.thisUpdateMs + list.nextUpdateMs) / 2)),
  }
}

/** Those that the plane has lists of, the issuing CA first, the root last: none above a leaf of an outside issuer. */
export const authoritiesAbove = (
  { chainPem }: Pick<ProgramLeaf, 'chainPem'>,
  { roots, outsideRoots }: Pick<Known, 'roots' | 'outsideRoots'>,
  nowMs: number,
): { readonly kind: 'above'; readonly listed: readonly ParsedCertificate[] } | Extract<Built, { kind: 'missing' }> => {
  const chain = allFromPem('CERTIFICATE', chainPem) ?? []
  const [trusted, outside] = [dersOf(roots), dersOf(outsideRoots)]
  const verdict = verifyIssuedChain({ chain, roots: [...trusted, ...outside], nowMs })
  if (verdict.kind === 'untrusted') return { kind: 'missing', why: `the leaf at hand is of no use: ${verdict.why}` }
  const root = verdict.path.at(-1)
  const isOurs = root !== undefined && trusted.some((der) => sameBytes(der, root.der))
  return { kind: 'above', listed: isOurs ? verdict.path.slice(1) : [] }
}

const dersOf = (pems: readonly string[]): readonly Uint8Array[] =>
  pems.flatMap((pem) => fromPem('CERTIFICATE', pem) ?? [])

const certificatesIn = (pems: readonly string[]): readonly ParsedCertificate[] =>
  pems.flatMap((pem) => {
    const der = fromPem('CERTIFICATE', pem)
    const certificate = der === null ? null : parseCertificate(der)
    return certificate === null || certificate.kind === 'malformed' ? [] : [certificate]
  })

const revokedBy = ({ authorityKeyId, entries }: KnownList): string => `${authorityKeyId} ${sha256Hex(entries)}`

const markOf = (...content: readonly unknown[]): string => sha256Hex(JSON.stringify(content))

/**
 * Computes anew when an argument is another than last time, so that signatures and long lists are not read every second. Arguments
 * are compared as they are: values here are never altered.
 */
export const remembered = <A extends readonly unknown[], T>(compute: (...args: A) => T): ((...args: A) => T) => {
  let last: { readonly args: A; readonly value: T } | null = null
  return (...args) => {
    if (last === null || args.some((arg, at) => arg !== last?.args[at])) last = { args, value: compute(...args) }
    return last.value
  }
}
