// A leaf for a program of a node: read, decide, sign, commit, answer.

import { certificateKey } from '#domain/core/certificate.ts'
import { withPart } from '#domain/core/change.ts'
import { actorOf, type NodePrincipal } from '#domain/core/principal.ts'
import { builtIn } from '#domain/core/profile.ts'
import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import { outputKind } from '#domain/issuers/named-issuer.ts'
import {
  decideProgram,
  isRenewal,
  listedOutput,
  namesFor,
  programIntended,
  programIssued,
  type ProgramAdmitted,
  type ProgramFacts,
} from '#domain/programs/issue-program.ts'
import { issuerOf } from '#domain/programs/output.ts'
import { leavesOf, programKey } from '#domain/programs/program.ts'
import { toPem } from '#pki/pem.ts'
import type { VerifySignature } from '#pki/signature.ts'
import { isoTime } from '#platform/clock.ts'
import { sortableId } from '#platform/random.ts'
import type { ProgramsAuthority } from '#plane/authority/programs-authority.ts'
import type { FlowCore } from '#plane/core/core.ts'
import { useCertificate } from '#plane/core/use-certificate.ts'
import { commitIssued, keyInRequest } from '#plane/core/issued-certificate.ts'
import { byOneIssuer, issueCertificate, leastLifetimeMs, type Answered } from '#plane/issuers/issue-certificate.ts'
import { openOrderOf } from '#plane/issuers/order-steps.ts'
import { orderedFor } from '#domain/issuers/order.ts'
import type { OutsideOrders } from '#plane/issuers/outside-orders.ts'
import type { WriteLimit } from '#plane/limits/write-limit.ts'
import type { ProgramResponse } from '#wire/programs/programs-api.ts'
import { claimFacts, namesHeldBy, vclusterOf } from '#plane/core/programs-of-node.ts'

export type ProgramIssueParts = {
  /** It also knows what hangs under outside issuers. */
  readonly programs: Pick<
    ProgramsAuthority,
    'sign' | 'chainOf' | 'roots' | 'withdrawnIssuers' | 'rowRead' | 'lookAgain'
  >
  readonly orders: Pick<OutsideOrders, 'place'>
  readonly verifyProof: VerifySignature
  /** PEM. */
  readonly outsideRoots: () => readonly string[]
  readonly writeLimit: WriteLimit
}

export type ProgramCall = {
  readonly output: string
  readonly csr: string
  /** The agent takes leaves of outside issuers. */
  readonly takesOutside: boolean
  readonly correlation: string
}

/** The plane that leads makes the authority within seconds of the first output. */
const authorityInMs = 5000
const beingMade = (): Refusal => ({
  ...refuse('UNAVAILABLE', 'the authority of programs is being made'),
  retryAfterMs: authorityInMs,
})

export const issueProgram = (
  core: FlowCore,
  parts: ProgramIssueParts,
  principal: NodePrincipal,
  call: ProgramCall,
): Promise<ProgramResponse | Refusal> => {
  const { programs, orders, writeLimit } = parts
  return issueCertificate<ProgramAdmitted, ProgramResponse>(orders, {
    csr: call.csr,
    decide: () => decide(core, parts, principal, call),
    limit: async () => writeLimit.take(principal.id),
    // An agent of the release before would wait for revocation lists that nobody here has: it gets a leaf below the programs root.
    ...byOneIssuer<ProgramAdmitted>(({ output }) => (call.takesOutside ? issuerOf(output) : builtIn)),
    sign: async (order) => (await programs.sign(order)) ?? beingMade(),
    openOrder: ({ facts }) => facts.ordered,
    outside: (admission, spki) => ({
      kind: outputKind(admission.output.name),
      purpose: isRenewal(admission.facts) ? 'renewal' : 'enrollment',
      intent: programIntended(admission, spki),
      slots: admission.facts.program === null ? [] : leavesOf(admission.facts.program.value),
      token: null,
      leastLifetimeMs: leastLifetimeMs(admission.order),
    }),
    async handOut(admission, signed, part) {
      const outcome = await commitIssued(core, programs, signed, withPart(programIssued(admission, signed), part))
      return outcome === 'lost-race' ? outcome : answerOf(core, parts, signed)
    },
  })
}

const decide = async (
  core: FlowCore,
  parts: ProgramIssueParts,
  principal: NodePrincipal,
  call: ProgramCall,
): Promise<ProgramAdmitted | Answered<ProgramResponse> | Refusal> => {
  const facts = await read(core, parts, principal, call)
  if (isRefusal(facts)) return facts
  const verdict = decideProgram(facts)
  // Agents take no leaf without the programs root, whoever has signed it.
  if (verdict.kind === 'admitted' && parts.programs.roots().length === 0) return beingMade()
  if (verdict.kind !== 'repeat') return verdict
  const { issuer, serial } = verdict.slot
  const stored = await core.store.get('certificate', certificateKey(issuer, serial))
  if (stored === null) return refuse('UNAVAILABLE', 'the certificate issued before is no longer on record')
  return { kind: 'answered', answer: async () => answerOf(core, parts, stored.value) }
}

const read = async (
  core: FlowCore,
  { programs, verifyProof }: Pick<ProgramIssueParts, 'programs' | 'verifyProof'>,
  principal: NodePrincipal,
  { output, csr, correlation }: ProgramCall,
): Promise<ProgramFacts | Refusal> => {
  const { store, clock, random } = core
  const key = await keyInRequest(verifyProof, csr)
  // Before the node: a claim that its own commit wrote is never newer than its row, and an order that is completed meanwhile is then
  // seen in the program as well.
  const keyClaim = key.kind === 'key' ? await store.get('key-claim', key.spkiHash) : null
  const subject = { kind: 'program', node: principal.id, epoch: principal.epoch, output } as const
  const ordered = keyClaim === null ? null : await openOrderOf(store, orderedFor(subject))
  const inUse = await useCertificate(core, principal, correlation)
  if (inUse.kind === 'refused') return inUse
  const { node, profile, domain } = inUse
  const { id, epoch } = node.value
  const vcluster = await vclusterOf(store, node.value)
  const held = await namesHeldBy(store, id)
  const listed = listedOutput(output, profile.value, vcluster?.value ?? null)
  const names = listed === null ? [] : namesFor(listed, held, node.value)
  const nowMs = clock.nowMs()
  return {
    node,
    principal,
    profile,
    vcluster,
    domain,
    output,
    key,
    keyBan: key.kind === 'key' ? await store.get('key-ban', key.spkiHash) : null,
    keyClaim,
    ordered,
    program: await store.get('program', programKey({ node: id, epoch, output })),
    held,
    claims: await claimFacts(store, names, id),
    withdrawn: programs.withdrawnIssuers(),
    orderId: sortableId(nowMs, random),
    by: { actor: actorOf(principal), source: principal.source, correlation },
    nowMs,
  }
}

const answerOf = (
  { clock }: FlowCore,
  { programs, outsideRoots }: Pick<ProgramIssueParts, 'programs' | 'outsideRoots'>,
  { issuer, der }: { readonly issuer: string; readonly der: string },
): ProgramResponse => ({
  certificate_chain: [Buffer.from(der, 'base64'), ...programs.chainOf(issuer)]
    .map((part) => toPem('CERTIFICATE', part))
    .join(''),
  roots: [...programs.roots()],
  ...outsideRootsPart(outsideRoots()),
  server_time: isoTime(clock.nowMs()),
})

/** Left out where there are none. */
export const outsideRootsPart = (roots: readonly string[]): Pick<ProgramResponse, 'outside_roots'> =>
  roots.length === 0 ? {} : { outside_roots: [...roots] }
