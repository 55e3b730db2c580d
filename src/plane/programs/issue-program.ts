// A leaf for a program of a node: read, decide, sign, commit, answer.

import { certificateKey } from '#domain/core/certificate.ts'
import { actorOf, type NodePrincipal } from '#domain/core/principal.ts'
import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import {
  decideProgram,
  listedOutput,
  namesFor,
  programIssued,
  type ProgramFacts,
} from '#domain/programs/issue-program.ts'
import { programKey } from '#domain/programs/program.ts'
import { toPem } from '#pki/pem.ts'
import { isoTime } from '#platform/clock.ts'
import { sortableId } from '#platform/random.ts'
import type { ProgramsAuthority } from '#plane/authority/programs-authority.ts'
import { nodeTries, retryLostRaces } from '#plane/core/commit-decision.ts'
import type { FlowCore } from '#plane/core/core.ts'
import { useCertificate } from '#plane/core/use-certificate.ts'
import { commitIssued, keyInRequest } from '#plane/core/issued-certificate.ts'
import type { WriteLimit } from '#plane/limits/write-limit.ts'
import type { ProgramResponse } from '#wire/programs/programs-api.ts'
import { claimFacts, namesHeldBy, vclusterOf } from '#plane/core/programs-of-node.ts'

export type ProgramIssueParts = { readonly programs: ProgramsAuthority; readonly writeLimit: WriteLimit }

export type ProgramCall = { readonly output: string; readonly csr: string; readonly correlation: string }

/** The plane that leads makes the authority within seconds of the first output. */
const authorityInMs = 5000

export const issueProgram = (
  core: FlowCore,
  { programs, writeLimit }: ProgramIssueParts,
  principal: NodePrincipal,
  call: ProgramCall,
): Promise<ProgramResponse | Refusal> =>
  retryLostRaces(nodeTries, async () => {
    const facts = await read(core, programs, principal, call)
    if (isRefusal(facts)) return facts
    const verdict = decideProgram(facts)
    if (verdict.kind === 'refused') return verdict
    if (verdict.kind === 'repeat') {
      const { issuer, serial } = verdict.slot
      const stored = await core.store.get('certificate', certificateKey(issuer, serial))
      if (stored === null) return refuse('UNAVAILABLE', 'the certificate issued before is no longer on record')
      return answerOf(core, programs, stored.value)
    }
    const limited = writeLimit.take(principal.id)
    if (limited !== null) return limited
    const signed = await programs.sign(verdict.order)
    if (signed === null) {
      return { ...refuse('UNAVAILABLE', 'the authority of programs is being made'), retryAfterMs: authorityInMs }
    }
    const outcome = await commitIssued(core, programs, signed, programIssued(verdict, signed))
    return outcome === 'lost-race' ? outcome : answerOf(core, programs, signed)
  })

const read = async (
  core: FlowCore,
  programs: ProgramsAuthority,
  principal: NodePrincipal,
  { output, csr, correlation }: ProgramCall,
): Promise<ProgramFacts | Refusal> => {
  const { store, clock, random } = core
  const key = await keyInRequest(csr)
  // Before the node: a claim that its own commit wrote is never newer than its row.
  const keyClaim = key.kind === 'key' ? await store.get('key-claim', key.spkiHash) : null
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
  programs: Pick<ProgramsAuthority, 'chainOf' | 'roots'>,
  { issuer, der }: { readonly issuer: string; readonly der: string },
): ProgramResponse => ({
  certificate_chain: [Buffer.from(der, 'base64'), ...programs.chainOf(issuer)]
    .map((part) => toPem('CERTIFICATE', part))
    .join(''),
  roots: [...programs.roots()],
  server_time: isoTime(clock.nowMs()),
})
