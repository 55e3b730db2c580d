// Takes what a peer domain says of machines, and says what of them is here. Only what a configured peer has signed for this
// domain just now is believed, and all that follows is a condition.

import { type Claim, type PeerDomain, claimKey } from '#domain/federation/peer-domain.ts'
import { decideElsewhere, decideTakeClaims } from '#domain/federation/claim-rules.ts'
import type { Row, Attribution } from '#domain/core/change.ts'
import { hasCondition } from '#domain/core/conditions.ts'
import type { Node, NodeId } from '#domain/core/node.ts'
import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import { verifySignature } from '#pki/keys.ts'
import { hardwareValues } from '#plane/store/commit/columns.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { mostAnswered, mostHardware, type Claims } from '#wire/core/claims.ts'
import type { ClaimsAnswer } from '#wire/federation/claim-api.ts'
import { parseStatement } from '#wire/core/statement.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { everyNode } from '#plane/core/pages.ts'
import { peerDomains } from './peer-domains.ts'
import type { CallerBudget } from '#plane/limits/caller-budget.ts'
import type { FlowCore } from '#plane/core/core.ts'

/** A machine is active elsewhere in the sense of a claim only while it is active. */
export const claimedState = (node: Node): Claim['state'] => (node.membership.kind === 'active' ? 'active' : 'inactive')

/** What a caller may cost that has proved nothing. */
export type ClaimBudget = Pick<CallerBudget, 'room' | 'retryAfterMs'>

export const receiveClaims = async (
  core: FlowCore,
  anonymousBudget: ClaimBudget,
  {
    statement,
    source,
    correlation,
  }: { readonly statement: string; readonly source: string; readonly correlation: string },
): Promise<ClaimsAnswer | Refusal> => {
  const judged = await judgeStatement(core, statement)
  if (isRefusal(judged)) {
    if (anonymousBudget.room(source)) return judged
    return { ...refuse('RATE_LIMITED'), retryAfterMs: anonymousBudget.retryAfterMs() }
  }
  const { peer, claims } = judged
  const by: Attribution = { actor: `domain:${peer.name}`, source, correlation }
  const trouble = await takeClaims(core, peer.name, claims, by)
  return trouble ?? { machines: await machinesHere(core.store, claims) }
}

type Judged = { readonly peer: PeerDomain; readonly claims: Claims }

const judgeStatement = async ({ store, clock }: FlowCore, text: string): Promise<Judged | Refusal> => {
  const parsed = parseStatement('claims', text)
  const peer = parsed === null ? null : await store.get('peer-domain', parsed.value.domain)
  if (parsed === null || peer === null || peer.value.removedAtMs !== null) return refuse('CLAIM_INVALID')
  const isSigned = peer.value.statementKeys.some((key) =>
    verifySignature(Buffer.from(key, 'base64'), parsed.signed, parsed.signature),
  )
  if (!isSigned) return refuse('CLAIM_INVALID')
  const { value: domain } = await domainSettingsRow(store)
  if (parsed.value.to !== domain.name) return refuse('CLAIM_INVALID', `it was made for ${parsed.value.to}`)
  if (Math.abs(parsed.value.at_ms - clock.nowMs()) > domain.clockToleranceMs)
    return refuse('CLAIM_INVALID', 'it is too old, or one of the two clocks is wrong')
  // Each is looked up separately.
  if (parsed.value.machines.flatMap(({ hardware }) => hardware).length > mostHardware)
    return refuse('CLAIM_INVALID', `it names more than ${mostHardware} addresses`)
  return { peer: peer.value, claims: parsed.value }
}

/** What `domain` says of machines is kept, and the conditions of those that are here follow it. Null: it was taken. */
export const takeClaims = async (
  core: FlowCore,
  domain: string,
  { at_ms: atMs, machines }: Pick<Claims, 'at_ms' | 'machines'>,
  by: Attribution,
): Promise<Refusal | null> => {
  const nodes = await nodesWith(
    core.store,
    machines.flatMap(({ hardware }) => hardware),
  )
  // Of a machine that is not in our registry nothing is kept: when it is let in here, its domain is asked.
  const ours = new Set(nodes.flatMap(({ value }) => hardwareValues(value.hardware)))
  const said = new Map(
    machines.flatMap(({ node, hardware, state }) =>
      hardware
        .filter((value) => ours.has(value))
        .map((value): [string, Omit<Claim, 'receivedAtMs'>] => [value, { hardware: value, domain, node, state, atMs }]),
    ),
  )
  const done = await commitDecision(core, async () => {
    const peer = await core.store.get('peer-domain', domain)
    if (peer === null || peer.value.removedAtMs !== null) return refuse('PEER_DOMAIN_NOT_FOUND', domain)
    const claims = await Promise.all(
      [...said.values()].map(async (one) => ({ said: one, known: await core.store.get('claim', claimKey(one)) })),
    )
    return decideTakeClaims({ peer, claims, by, nowMs: core.clock.nowMs() })
  })
  if (done.kind === 'refused') return done
  for (const { value } of nodes) await settleElsewhere(core, value.id, by)
  return null
}

/** Whether a node is active elsewhere, by all that was said of its hardware. */
export const settleElsewhere = async (core: FlowCore, id: NodeId, by: Attribution): Promise<void> => {
  await commitDecision(core, async () => {
    const node = await core.store.get('node', id)
    if (node === null) return { kind: 'unchanged' } as const
    const peers = new Set((await peerDomains(core.store)).map(({ name }) => name))
    const claims = await claimsAbout(core.store, hardwareValues(node.value.hardware))
    const believed = claims.filter(({ domain }) => peers.has(domain))
    return decideElsewhere({ node, claims: believed, by, nowMs: core.clock.nowMs() })
  })
}

/** The same for every node with a claim of another domain that has expired, or whose domain is no longer a peer. */
export const settleEveryElsewhere = async (core: FlowCore, by: Attribution): Promise<void> => {
  for await (const node of everyNode(core.store))
    if (hasCondition(node, 'active_elsewhere')) await settleElsewhere(core, node.id, by)
}

const mostClaimsOfOne = 100

const claimsAbout = async (store: Store, hardware: readonly string[]): Promise<readonly Claim[]> => {
  const query = { after: null, limit: mostClaimsOfOne }
  const found = await Promise.all(
    hardware.map((value) => store.list('claim', { ...query, where: { hardware: value } })),
  )
  return found.flat().map(({ value }) => value)
}

const machinesHere = async (store: Store, { machines }: Claims): Promise<ClaimsAnswer['machines']> => {
  const asked = new Set(machines.flatMap(({ hardware }) => hardware))
  return (await nodesWith(store, [...asked])).slice(0, mostAnswered).map(({ value }) => ({
    node: value.id,
    hardware: hardwareValues(value.hardware).filter((one) => asked.has(one)),
    state: claimedState(value),
  }))
}

const nodesWith = async (store: Store, hardware: readonly string[]): Promise<readonly Row<Node>[]> => {
  const of = (kind: string): string[] =>
    hardware.filter((value) => value.startsWith(kind)).map((value) => value.slice(kind.length))
  const asked = [{ macs: of('mac:'), bmcSerial: null }, ...of('bmc:').map((bmcSerial) => ({ macs: [], bmcSerial }))]
  const found = (await Promise.all(asked.map((identity) => store.nodesByHardware(identity)))).flat()
  // A revoked node keeps its address until another node takes it, and is no longer a machine of this domain.
  const living = found.filter(({ value }) => value.membership.kind !== 'revoked')
  return [...new Map(living.map((row) => [row.value.id, row])).values()]
}
