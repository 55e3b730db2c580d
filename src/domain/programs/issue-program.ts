// A leaf for one program of a node: whether the node gets one, what is ordered, and what is written once it is signed. Names are
// those that an operator registered; only the public key is taken from the request.

import { isoTime } from '#platform/clock.ts'
import {
  isFromFuture,
  placeOrder,
  slotOf,
  type CertificateRow,
  type IssuedCertificate,
  type KeyBan,
  type SigningOrder,
} from '#domain/core/certificate.ts'
import {
  entry,
  readOf,
  type Attribution,
  type Change,
  type ChangePart,
  type Read,
  type Row,
  type RowTypes,
  type Write,
} from '#domain/core/change.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import { withOwner, type KeyClaim } from '#domain/identity/key-claim.ts'
import { issuanceStopped, type IssueFacts, type KeyInRequest } from '#domain/identity/node-certificate.ts'
import type { IssuerId, Node, NodeId, Slot } from '#domain/core/node.ts'
import type { NodePrincipal } from '#domain/core/principal.ts'
import type { Profile } from '#domain/core/profile.ts'
import { refuse, refuseField, type Refusal } from '#domain/core/refusal.ts'
import { programUri } from '#domain/core/subject-uri.ts'
import { bareName, isDnsName, type NameClaim } from './name-claim.ts'
import { claimedBy, claimReads, leafNames, nameTaken, registeredNames, type ClaimFact } from './node-names.ts'
import { outputsFor, type Output, type OutputList } from './output.ts'
import { denialOfLeaf, leavesOf, programKey, type Program, type ProgramLeaf } from './program.ts'

export type ProgramFacts = {
  readonly node: Row<Node>
  readonly principal: NodePrincipal
  readonly profile: Row<Profile>
  /** Null: maintenance mode. */
  readonly vcluster: Row<OutputList> | null
  readonly domain: Row<DomainSettings>
  readonly output: string
  readonly key: IssueFacts['key']
  readonly keyBan: Row<KeyBan> | null
  readonly keyClaim: Row<KeyClaim> | null
  /** The order to an outside issuer that is open for this output, where its key is claimed; null: none is. */
  readonly ordered: Row<RowTypes['order']> | null
  /** Of this epoch and output; null: there is none yet. */
  readonly program: Row<Program> | null
  /** The names of the node. Read behind its row, as everything here. */
  readonly held: readonly Row<NameClaim>[]
  /** Of every name that the leaf is to carry. */
  readonly claims: readonly ClaimFact[]
  readonly withdrawn: readonly IssuerId[]
  readonly orderId: string
  readonly by: Attribution
  readonly nowMs: number
}

export type ProgramAdmitted = {
  readonly kind: 'admitted'
  readonly facts: ProgramFacts
  readonly output: Output
  readonly order: SigningOrder
  readonly names: readonly string[]
}

/** Asked before for the same key: the answer is the certificate that was issued then. */
export type ProgramRepeated = { readonly kind: 'repeat'; readonly slot: Slot }

/** Null: neither the profile nor the vCluster of the node lists it. */
export const listedOutput = (name: string, profile: OutputList, vcluster: OutputList | null): Output | null =>
  outputsFor(profile, vcluster).find((one) => one.name === name) ?? null

/** What a leaf of the output carries on this node. */
export const namesFor = (output: Output, held: readonly Row<NameClaim>[], node: Pick<Node, 'id'>): readonly string[] =>
  leafNames(output, registeredNames(held, node.id))

export const decideProgram = (facts: ProgramFacts): ProgramAdmitted | ProgramRepeated | Refusal => {
  const { node, principal, domain, key, nowMs } = facts
  const barred = issuanceStopped(domain.value, isRenewal(facts) ? 'known' : 'new')
  if (barred !== null) return barred
  const { membership, epoch, id } = node.value
  // The caller's first use has been committed before: a node that may have a leaf is active by now.
  if (membership.kind !== 'active') return refuse('NODE_STATE_CONFLICT', `the node is ${membership.kind}`)
  if (epoch !== principal.epoch) return refuse('CLIENT_CERT_DENIED')
  const output = listedOutput(facts.output, facts.profile.value, facts.vcluster?.value ?? null)
  if (output === null) return { ...refuse('OUTPUT_NOT_LISTED', facts.output), about: { profile: node.value.profile } }
  if (key.kind === 'malformed') return refuseField('CSR_INVALID', 'csr', key.why)
  const names = namesFor(output, facts.held, node.value)
  if (output.usage !== 'client' && names.length === 0) {
    return { ...refuse('OUTPUT_WITHOUT_NAMES', output.name), about: { node: id } }
  }
  for (const claim of facts.claims) {
    const taken = nameTaken(claim, id)
    if (taken !== null) return taken
  }
  const current = facts.program?.value.current ?? null
  if (current?.spki === key.spkiHash && isStillGood(current, names, facts)) return { kind: 'repeat', slot: current }
  return (
    keyUnfit(facts, output, key) ??
    tooSoon(facts, output, names) ?? {
      kind: 'admitted',
      facts,
      output,
      names,
      order: orderProgramLeaf({
        ...{ id: facts.orderId, node: id, epoch, domain: domain.value.name, output, names },
        publicKey: key.spki,
        issuedAtMs: nowMs,
      }),
    }
  )
}

/** In which part of its lifetime a leaf is followed by two others at the earliest. */
const soonestThird = 1 / 24

/**
 * A third leaf denies the first, which stays on the revocation list until its end. A node that is not its own master any more must not
 * make that list longer than agents take, which would keep every later revocation from them. What an operator changes is not held up.
 */
const tooSoon = (facts: ProgramFacts, { name }: Output, names: readonly string[]): Refusal | null => {
  const { current = null, former = null } = facts.program?.value ?? {}
  if (current === null || former === null || former.notAfterMs <= facts.nowMs) return null
  if (!isStillGood(current, names, facts)) return null
  const waitMs = former.issuedAtMs + (former.notAfterMs - former.issuedAtMs) * soonestThird - facts.nowMs
  if (waitMs <= 0) return null
  const detail = `output ${name} has got two certificates within a short time`
  return { ...refuse('RATE_LIMITED', detail), retryAfterMs: Math.ceil(waitMs) }
}

export const isRenewal = ({ program }: Pick<ProgramFacts, 'program'>): boolean =>
  program !== null && program.value.current !== null

const isStillGood = (
  leaf: ProgramLeaf,
  names: readonly string[],
  { withdrawn, domain, nowMs }: ProgramFacts,
): boolean =>
  leaf.notAfterMs > nowMs &&
  !withdrawn.includes(leaf.issuer) &&
  !isFromFuture(leaf.issuedAtMs, nowMs, domain.value.clockToleranceMs) &&
  leaf.names.join() === names.join()

/** Every leaf has a key of its own, which is no key of the node and was never anyone's, unless an outside issuer has been asked to sign for it. */
const keyUnfit = (facts: ProgramFacts, { name, keyType }: Output, key: KeyInRequest): Refusal | null => {
  const { keyBan, keyClaim, ordered, node } = facts
  if (keyBan !== null) return refuse('KEY_BLOCKED')
  const isOrdered = ordered?.value.spki === key.spkiHash
  const isTaken = keyClaim?.value.holders.some(
    (holder) => !isOrdered || holder.node !== node.value.id || holder.use !== 'program',
  )
  if (isTaken === true) return refuse('KEY_IN_USE', `SHA256:${key.spkiHash}`)
  return key.keyType === keyType
    ? null
    : refuseField('CSR_INVALID', 'csr', `the output ${name} takes keys of type ${keyType}`)
}

export type ProgramLeafFacts = Pick<SigningOrder, 'id' | 'publicKey' | 'issuedAtMs'> & {
  readonly node: NodeId
  readonly epoch: number
  /** Its name. */
  readonly domain: string
  readonly output: Output
  /** As `NameClaim` writes them. */
  readonly names: readonly string[]
}

export const orderProgramLeaf = ({
  id,
  node,
  epoch,
  domain,
  output,
  names,
  publicKey,
  issuedAtMs,
}: ProgramLeafFacts) => {
  const { name, usage, lifetimeMs } = output
  return placeOrder({
    id,
    // The output's name alone: servers such as PostgreSQL take the common name for a user's.
    subject: { cn: name, o: domain.slice(0, 64), ou: 'programs' },
    uriSans: [programUri(domain, node, name)],
    dnsSans: names.filter(isDnsName).map(bareName),
    ipSans: names.filter((one) => !isDnsName(one)).map(bareName),
    usage,
    publicKey,
    issuedAtMs,
    lifetimeMs,
    aiaUrl: null,
    cdpUrl: null,
    for: { kind: 'program', node, epoch, output: name },
  })
}

/** A name that a template has made is claimed for the node with the leaf. */
const carriedBy = (one: ClaimFact, { node, domain, by, nowMs }: ProgramFacts, notAfterMs: number): NameClaim => {
  const { id } = node.value
  const held = one.claim?.value
  const isOwn = held?.holder.kind === 'node' && held.holder.node === id
  const claim = isOwn ? held : claimedBy(one, id, true, by, nowMs)
  return { ...claim, carriedUntilMs: Math.max(claim.carriedUntilMs, notAfterMs + domain.value.clockToleranceMs) }
}

/** A revocation, a halt, a ban or a name that is taken must beat a leaf that it did not touch. */
const reliedOn = (
  { node, profile, vcluster, domain, keyClaim, claims, program, output }: ProgramFacts,
  spki: string,
): readonly Read[] => {
  const { id, epoch } = node.value
  return [
    readOf('node', id, node),
    readOf('profile', profile.value.name, profile),
    ...(vcluster === null ? [] : [readOf('vcluster', vcluster.value.name, vcluster)]),
    readOf('domain', 'domain', domain),
    readOf('key-ban', spki, null),
    readOf('key-claim', spki, keyClaim),
    readOf('program', programKey({ node: id, epoch, output }), program),
    ...claims.flatMap(claimReads),
  ]
}

const keyClaimed = ({ keyClaim, node, nowMs }: ProgramFacts, spki: string): readonly Write[] => {
  const owner = { node: node.value.id, use: 'program', sinceMs: nowMs } as const
  const value = withOwner(keyClaim?.value ?? { spki, holders: [] }, owner)
  return value === keyClaim?.value ? [] : [{ put: 'key-claim', value }]
}

/** What is committed with the order before an outside issuer is asked: all that the leaf will rely on, and the claim on its key. */
export const programIntended = (
  { facts }: ProgramAdmitted,
  spki: string,
): Required<Pick<ChangePart, 'reads' | 'writes'>> => ({
  reads: reliedOn(facts, spki),
  writes: keyClaimed(facts, spki),
})

/**
 * Writes the row of the node, too, as it is: it orders what happens to the programs of one node, so that neither a revocation nor a
 * name that is taken away overlooks a leaf that is signed at the same time.
 */
export const programIssued = ({ facts, names }: ProgramAdmitted, issued: IssuedCertificate): Change => {
  const { node, domain, output, program, claims, by, nowMs } = facts
  const { id, epoch } = node.value
  const before = program?.value ?? null
  const certificate: CertificateRow = {
    ...issued,
    subject: { kind: 'program', node: id, epoch, output },
    renews: before?.current?.serial ?? null,
  }
  const [former = null, ...older] = before === null ? [] : leavesOf(before)
  const next: Program = {
    ...{ node: id, epoch, output, current: { ...slotOf(certificate), names }, former, ended: null },
  }
  const body = {
    output,
    names,
    renews: certificate.renews,
    key: `SHA256:${issued.spki}`,
    fingerprint: `SHA256:${issued.sha256}`,
    order: issued.order,
    not_after: isoTime(issued.notAfterMs),
  }
  return {
    reads: reliedOn(facts, issued.spki),
    writes: [
      { put: 'node', value: node.value },
      { put: 'program', value: next },
      { put: 'certificate', value: certificate },
      ...keyClaimed(facts, issued.spki),
      ...claims.map((one) => ({ put: 'name-claim', value: carriedBy(one, facts, issued.notAfterMs) }) as const),
      // Of one program two leaves are good at a time: what is to be denied later is in its row. What leaves the row is denied also
      // where it has expired by this clock, which may be wrong.
      ...older.map((leaf) =>
        denialOfLeaf(leaf, {
          atMs: nowMs,
          why: 'replaced by two later ones',
          reason: 'superseded',
          toleranceMs: domain.value.clockToleranceMs,
        }),
      ),
    ],
    entries: [
      entry(
        by,
        nowMs,
        isRenewal(facts) ? 'program.renewed' : 'program.issued',
        { node: id, epoch, issuer: issued.issuer, serial: issued.serial },
        body,
      ),
    ],
  }
}
