// What may be written for a program: its own leaf below a programs root that was pinned on this host, the key of that leaf, and
// lists of authorities below that root. What is written is made anew from what was verified, so that nothing else gets in. All functions here are pure.

import { checkAuthority, checkLeaf, checkList } from '#agent/programs/check-generation.ts'
import type { Generation } from '#agent/programs/publisher.ts'
import { sameBytes } from '#platform/bytes.ts'
import { loadPrivateKey } from '#pki/keys.ts'
import { parseCrl, type ParsedList } from '#pki/parse-crl.ts'
import { parseCertificate, type ParsedCertificate } from '#pki/parse-certificate.ts'
import { allFromPem, fromPem, toPem } from '#pki/pem.ts'
import { mostProgramLists } from '#wire/programs/programs-api.ts'
import { refused, type Refused, type RequestOf } from './verbs.ts'

/** By the key identifiers of authorities: their newest list. */
export type NewestLists = ReadonlyMap<string, Pick<ParsedList, 'number' | 'thisUpdateMs'>>

export type OutputFacts = {
  readonly given: RequestOf<'output.write'>
  readonly node: { readonly domain: string; readonly id: string }
  /** DER. */
  readonly pinnedRoots: readonly Uint8Array[]
  /** Of outside issuers: no lists of theirs come from the plane. One that is among both is one of these. */
  readonly outsideRoots: readonly Uint8Array[]
  /** The lists that were written here before. */
  readonly before: NewestLists
  readonly nowMs: number
}

export type CheckedOutput = {
  readonly kind: 'checked'
  readonly files: Pick<Generation, 'keyPem' | 'chainPem' | 'rootsPem' | 'lists'>
  readonly lists: NewestLists
  /** Hex. */
  readonly serial: string
  readonly rootsLeftOut: number
}

export const checkOutput = (facts: OutputFacts): CheckedOutput | Refused => {
  const { given, node, pinnedRoots, outsideRoots, before, nowMs } = facts
  const trusted = [...pinnedRoots, ...outsideRoots.filter((der) => !isAmong(der, pinnedRoots))]
  const checked = checkLeaf(
    { keyPem: given.key, chainPem: given.chain, roots: trusted, nowMs },
    { domain: node.domain, node: node.id, output: given.name },
  )
  if (checked.kind === 'unusable') return refused('LEAF_REFUSED', `The leaf is not written: ${checked.why}`)
  const { leaf, authorities } = checked
  const others = otherAuthorities(given.authorities, pinnedRoots, nowMs)
  if ('code' in others) return others
  const root = authorities.at(-1)
  const isOutside = root !== undefined && isAmong(root.der, outsideRoots)
  const lists = listsOf(given.lists, isOutside ? [] : authorities, others, before, nowMs)
  if ('code' in lists) return lists
  const roots = allFromPem('CERTIFICATE', given.roots)
  if (roots === null) return refused('BAD_REQUEST', 'The roots are not a list of certificates in PEM')
  // A plane that begins to use another root must not stop the outputs of hosts that have not pinned it yet.
  const kept = trusted.filter((der) => isAmong(der, roots) || (root !== undefined && sameBytes(der, root.der)))
  return {
    kind: 'checked',
    files: {
      keyPem: loadPrivateKey(given.key).pkcs8Pem(),
      chainPem: [leaf, ...authorities.slice(0, -1)].map(certificatePem).join(''),
      rootsPem: kept.map((der) => toPem('CERTIFICATE', der)).join(''),
      lists: lists.pems,
    },
    lists: lists.newest,
    serial: leaf.serial,
    rootsLeftOut: roots.filter((der) => !isAmong(der, trusted)).length,
  }
}

const isAmong = (der: Uint8Array, all: readonly Uint8Array[]): boolean => all.some((other) => sameBytes(der, other))

const certificatePem = ({ der }: ParsedCertificate): string => toPem('CERTIFICATE', der)

/** `unpinned`: the key identifiers of those that hang below no pinned root. Their lists are left out. */
type OtherAuthorities = { readonly known: readonly ParsedCertificate[]; readonly unpinned: ReadonlySet<string> }

const otherAuthorities = (
  pem: string,
  pinnedRoots: readonly Uint8Array[],
  nowMs: number,
): OtherAuthorities | Refused => {
  const ders = pem === '' ? [] : allFromPem('CERTIFICATE', pem)
  if (ders === null || ders.length > mostProgramLists)
    return refused('LIST_REFUSED', 'No list is written: the other authorities are not certificates in PEM, or too many')
  const known: ParsedCertificate[] = []
  const unpinned = new Set<string>()
  for (const der of ders) {
    const checked = checkAuthority(der, pinnedRoots, nowMs)
    const parsed = parseCertificate(der)
    if (checked.kind === 'authority') known.push(checked.authority)
    else if (parsed.kind !== 'malformed' && parsed.subjectKeyId !== null) unpinned.add(parsed.subjectKeyId)
  }
  return { known, unpinned }
}

type CheckedLists = { readonly pems: readonly string[]; readonly newest: NewestLists }

/** One of each authority above the leaf, in the order of the chain, and then those of others, at most one of each. */
const listsOf = (
  given: readonly string[],
  authorities: readonly ParsedCertificate[],
  { known, unpinned }: OtherAuthorities,
  before: NewestLists,
  nowMs: number,
): CheckedLists | Refused => {
  const newest = new Map<string, Pick<ParsedList, 'number' | 'thisUpdateMs'>>()
  const pems = new Map<string, string>()
  for (const pem of given) {
    if (isOfUnpinned(pem, unpinned)) continue
    const checked = checkList(pem, [...authorities, ...known], nowMs)
    if (checked.kind === 'unusable') return refused('LIST_REFUSED', `No list is written: ${checked.why}`)
    const { authorityKeyId, number, thisUpdateMs } = checked.list
    const last = before.get(authorityKeyId)?.number
    if (last !== undefined && number < last) {
      return refused(
        'LIST_OLDER',
        `List ${number} of authority ${authorityKeyId} is older than ${last}, which was written`,
      )
    }
    if (newest.has(authorityKeyId)) return refused('LIST_REFUSED', `Two lists of authority ${authorityKeyId}`)
    newest.set(authorityKeyId, { number, thisUpdateMs })
    pems.set(authorityKeyId, toPem('X509 CRL', fromPem('X509 CRL', pem) ?? new Uint8Array(0)))
  }
  const above = authorities.map(({ subjectKeyId }) => subjectKeyId ?? '')
  const missing = authorities.find(({ subjectKeyId }) => !pems.has(subjectKeyId ?? ''))
  if (missing !== undefined) return refused('LIST_REFUSED', `There is no list of ${missing.subject}`)
  const rest = [...pems.keys()].filter((id) => !above.includes(id))
  return { pems: [...above, ...rest].map((id) => pems.get(id) ?? ''), newest }
}

const isOfUnpinned = (pem: string, unpinned: ReadonlySet<string>): boolean => {
  const der = fromPem('X509 CRL', pem)
  const list = der === null ? null : parseCrl(der)
  return list?.kind === 'list' && unpinned.has(list.authorityKeyId)
}
