// The registry: looking at nodes, and registering them.

import type { Static } from 'typebox'
import { alertKey } from '#domain/alerts/alert.ts'
import { builtIn } from '#domain/issuers/outside-issuer.ts'
import { issuerSentences, type IssuerOfNode } from '#domain/node/explain-issuer.ts'
import type { Store } from '#plane/store/contract/store.ts'
import type { Node, NodeId } from '#domain/core/node.ts'
import { everySlot, slotsOf } from '#domain/core/certificate.ts'
import { withoutFullStop } from '#domain/core/in-words.ts'
import { recoverabilityOf } from '#domain/core/recoverability.ts'
import { isRefusal, refuse, refuseField, type Refusal } from '#domain/core/refusal.ts'
import { isSchedulable } from '#domain/fleet/scheduling.ts'
import { outputsFor } from '#domain/programs/output.ts'
import { outputSentences, outputStandings } from '#domain/programs/output-standing.ts'
import {
  commonPrefix,
  isGlob,
  isSelected,
  nameMatcher,
  noVCluster,
  placeBefore,
  type NodeSelector,
} from '#domain/fleet/node-selector.ts'
import { formerNode } from '#plane/core/former-node.ts'
import { nodePages } from '#plane/core/pages.ts'
import { profilesByName, recoverabilityNow, type RecoverabilityCounts } from '#plane/core/count-recoverable.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { liveProfile } from '#plane/core/live-profile.ts'
import { signerNames } from '#plane/core/outside-issuer-rows.ts'
import { programsOf } from '#plane/core/programs-of-node.ts'
import type { OpenChannels, OpenSession, PeerProofs } from '#plane/core/open-channels.ts'
import { nodeDetail, nodeView, type DetailFacts, whyOf } from './node-view.ts'
import type { NodeExplanation } from '#wire/node/node-evidence.ts'
import { type NodeDetail, type NodeListQuery, nodeApi } from '#wire/node/node-api.ts'
import { attributionOf, answer, type CallOf, type Route, serve } from '#plane/http/route.ts'
import type { FlowCore } from '#plane/core/core.ts'
import { type Attribution, type NodeDecided, boundedText } from '#domain/core/change.ts'
import { hardwareIdentity } from '#domain/core/hardware-identity.ts'
import { decideRegister } from '#domain/enrollment/registration.ts'
import { commitDecision, type Done } from '#plane/core/commit-decision.ts'
import { causalChain, storyTypes, type StoryEntry, type AgentEvent } from '#domain/node/explain-story.ts'
import { nextCommands } from '#domain/node/next-commands.ts'
import { unresolvedFailure } from '#domain/node/unresolved-failure.ts'
import { isoTime, parseIsoTime } from '#platform/clock.ts'
import type { StoryLine } from '#wire/node/report.ts'

/** Where a node's channels are and what its peers have confirmed. */
export type NodeSources = {
  readonly channels: Pick<OpenChannels, 'everySession'>
  readonly peers: Pick<PeerProofs, 'stateOf'>
}

export type NodeRoutesParts = {
  readonly channels: OpenChannels
  readonly peers: Pick<PeerProofs, 'stateOf'>
  readonly recoverability: () => Promise<RecoverabilityCounts>
}

const usualPage = 100

export const operatorNodeRoutes = (core: FlowCore, parts: NodeRoutesParts): readonly Route[] =>
  serve(nodeApi, {
    list: (call) => listNodes(core, parts.channels, call.query),
    register: (call) => register(core, parts, call),
    show: async (call) => {
      const node = await core.store.get('node', call.params.id)
      return node === null ? refuse('NODE_NOT_FOUND', call.params.id) : answer(await detailOf(core, parts, node.value))
    },
    explain: async (call) => {
      const node = await core.store.get('node', call.params.id)
      return node === null ? refuse('NODE_NOT_FOUND', call.params.id) : answer(await explain(core, parts, node.value))
    },
    recoverability: async () => {
      const { nodes, proven, why } = await parts.recoverability()
      return answer({ nodes, proven, share: nodes === 0 ? null : proven / nodes, why })
    },
  })

/** Nodes looked at for one page of those that match what the store has no index for: a page may be short, its `next` goes on. */
const mostLookedAt = 2000

const selectorIn = (query: Static<typeof NodeListQuery>): NodeSelector => ({
  names: query.name?.split(',') ?? [],
  state: query.state ?? query.membership ?? null,
  profile: query.profile ?? null,
  vcluster: query.vcluster ?? null,
  condition: query.condition ?? null,
  tags: query.tag?.split(',') ?? [],
  connected: query.connected === undefined ? null : query.connected === 'yes',
})

const listNodes = async (
  core: FlowCore,
  channels: Pick<OpenChannels, 'isConnected'>,
  query: Static<typeof NodeListQuery>,
) => {
  const { limit = usualPage, recoverable = null, schedulable = null } = query
  if (query.state !== undefined && query.membership !== undefined) {
    return refuseField('REQUEST_INVALID', 'membership', 'membership is the old name of state: give one of them')
  }
  const selector = selectorIn(query)
  const { state: membership, profile, names } = selector
  const vcluster = selector.vcluster === noVCluster ? null : selector.vcluster
  if (vcluster !== null) {
    const named = await core.store.get('vcluster', vcluster)
    if (named === null || named.value.deletedAtMs !== null) return refuse('VCLUSTER_NOT_FOUND', vcluster)
  }
  const profiles = await profilesByName(core.store)
  if (profile !== null && !profiles.has(profile)) return refuse('PROFILE_NOT_FOUND', profile)
  // Of the first page: a node may be purged while the pages behind it are read.
  const ids = query.after === undefined ? names.filter((name) => !isGlob(name)) : []
  const rowsOfIds = await Promise.all(ids.map((id) => core.store.get('node', id)))
  const missing = ids.find((_, at) => rowsOfIds[at] === null)
  if (missing !== undefined) return refuse('NODE_NOT_FOUND', missing)
  const nodes: ReturnType<typeof nodeView>[] = []
  const isNamed = nameMatcher(names)
  const prefix = commonPrefix(names)
  const from = later(query.after ?? null, placeBefore(prefix))
  const begin = from === null ? {} : { from }
  let looked = 0
  for await (const rows of nodePages(core.store, { limit, membership, profile, vcluster, ...begin })) {
    // All at once: where their channels are is looked up together.
    const connected = await Promise.all(rows.map(({ value }) => channels.isConnected(value.id)))
    for (const [at, { value }] of rows.entries()) {
      const { id } = value
      if (!id.startsWith(prefix)) return answer({ nodes, next: null })
      if (!isNamed(id) || !isSelected(value, selector)) continue
      if (selector.connected !== null && (connected[at] === true) !== selector.connected) continue
      if (schedulable !== null && isSchedulable(value) !== (schedulable === 'yes')) continue
      const recoverability = await recoverabilityNow(core.store, value, profiles, core.clock.nowMs())
      if (recoverable !== null && recoverability.recoverable !== (recoverable === 'yes')) continue
      const observed = await core.store.observation(value.id)
      nodes.push(nodeView(value, { observed, connected: connected[at] === true, recoverability }))
      if (nodes.length === limit) return answer({ nodes, next: id })
    }
    looked += rows.length
    const last = rows.at(-1)
    if (looked >= mostLookedAt && rows.length === limit && last !== undefined)
      return answer({ nodes, next: last.value.id })
  }
  return answer({ nodes, next: null })
}

const later = (one: string | null, other: string | null): string | null =>
  one === null || (other !== null && other > one) ? other : one

const register = async (core: FlowCore, sources: NodeSources, call: CallOf<typeof nodeApi.register>) => {
  const { id, profile = null, macs = [], bmc_serial: bmcSerial = null } = call.body
  const done = await registerNode(core, { id, profile, macs, bmcSerial }, attributionOf(call))
  return done.kind === 'refused' ? done : answer(await detailOf(core, sources, done.node), 201)
}

const inNoGroup = { group: null, applied: null }

const factsOf = async (
  { store, clock }: FlowCore,
  { channels, peers }: NodeSources,
  node: Node,
): Promise<DetailFacts> => {
  const named = await store.get('profile', node.profile)
  // Of a row that cannot be read the profile may be gone as well: any other serves, nothing is granted by it.
  const profile = named ?? (node.unreadable === undefined ? null : ((await store.profiles())[0] ?? null))
  if (profile === null) throw new Error(`profile ${node.profile} of node ${node.id} is not in the store`)
  const vcluster = node.assignment === null ? null : await store.get('vcluster', node.assignment)
  const domain = await domainSettingsRow(store)
  const observed = await store.observation(node.id)
  const sessions = await channels.everySession(node.id)
  const programs = await programsOf(store, node.id)
  const nowMs = clock.nowMs()
  return {
    observed,
    sessions,
    connected: sessions.length > 0,
    recoverability: recoverabilityOf(node, profile.value, observed.rehearsedAtMs, nowMs),
    profile: profile.value,
    vcluster: vcluster === null ? null : vcluster.value,
    domain: domain.value,
    wireguard: node.wireguard === null ? inNoGroup : await peers.stateOf(node.id),
    outputs: outputStandings({
      outputs: hasIdentity(node) ? outputsFor(profile.value, vcluster?.value ?? null) : [],
      epoch: node.epoch,
      programs: programs.map(({ value }) => value),
      report: observed.outputs,
      nowMs,
    }),
    signerOf: await signerNames(store),
    nowMs,
  }
}

/** One that was revoked, or is not in yet, has no outputs. */
const hasIdentity = ({ membership: { kind } }: Node): boolean => kind !== 'registered' && kind !== 'revoked'

/** A node with its reasons, as every call that changes one answers it. */
export const detailOf = async (core: FlowCore, sources: NodeSources, node: Node): Promise<NodeDetail> =>
  nodeDetail(node, await factsOf(core, sources, node))

/** Enough for the story that is going on, and what led to it. */
const entriesRead = 200

const explain = async (core: FlowCore, sources: NodeSources, node: Node): Promise<NodeExplanation> => {
  const query = { node: node.id, after: null, last: entriesRead, limit: entriesRead }
  const read = await Promise.all(storyTypes().map((type) => core.store.journal.read({ ...query, type })))
  const entries = read.flat().map(({ entry }) => entry)
  // As they were written, also those of one commit: the chain keeps the order of what happened at the same time.
  entries.sort((a, b) => a.atMs - b.atMs || a.sequence - b.sequence)
  const facts = await factsOf(core, sources, node)
  const [awaySinceMs, lost] = await Promise.all([
    issuerAwaySince(core.store, facts.profile.certificate.issuer),
    lostOrder(core.store, node.id),
  ])
  return explanationView(node, { ...facts, issuer: { awaySinceMs, lost } }, entries)
}

/** Null: it answers, as far as any replica knows. */
const issuerAwaySince = async (store: Pick<Store, 'get'>, subject: string): Promise<number | null> => {
  if (subject === builtIn) return null
  const alert = await store.get('alert', alertKey({ kind: 'issuer_unavailable', subject }))
  return alert === null || alert.value.state.kind === 'resolved' ? null : alert.value.sinceMs
}

/** Null: nothing was ordered outside for it, or that is under way or done. */
const lostOrder = async (store: Pick<Store, 'list'>, node: NodeId): Promise<IssuerOfNode['lost']> => {
  const [order] = await store.list('order', { where: { open_for: node }, after: null, limit: 1 })
  const state = order?.value.state
  return state?.kind === 'lost' ? { why: boundedText(state.why, 300), sinceMs: state.sinceMs } : null
}

export type Registration = {
  readonly id: NodeId
  /** Null: the domain's default. */
  readonly profile: string | null
  readonly macs: readonly string[]
  readonly bmcSerial: string | null
}

export const registerNode = async (
  core: FlowCore,
  asked: Registration,
  by: Attribution,
): Promise<Done<NodeDecided> | Refusal> => {
  const hardware = hardwareIdentity(asked.macs, asked.bmcSerial)
  if ('kind' in hardware) return hardware
  return commitDecision(core, async () => {
    const name = asked.profile ?? (await domainSettingsRow(core.store)).value.defaultProfile
    const profile = await liveProfile(core.store, name)
    if (isRefusal(profile)) return profile
    const existing = await core.store.get('node', asked.id)
    const owners = await core.store.nodesByHardware(hardware)
    const former = await formerNode(core.store, asked.id)
    const nowMs = core.clock.nowMs()
    return decideRegister({ id: asked.id, profile, hardware, existing, former, owners, by, nowMs })
  })
}

// `node explain`: the state of a node, what led there, and what an operator could do about it.

const explanationView = (
  node: Node,
  facts: DetailFacts & { readonly issuer: IssuerOfNode },
  entries: readonly StoryEntry[],
): NodeExplanation => {
  const { report } = facts.observed
  const events = report === null ? [] : report.story.flatMap(agentEventOf)
  return {
    node: node.id,
    sentences: [
      ...whyOf(node, facts),
      ...issuerSentences(node, facts.profile, facts.issuer, facts.nowMs),
      ...outputSentences(facts.outputs),
      recoverySentence(facts),
      ...lastWord(node, facts),
    ],
    chain: causalChain(entries, events).map(({ atMs, ...link }) => ({ at: isoTime(atMs), ...link })),
    last_report_at: report === null ? null : boundedText(report.at, 32),
    next: nextCommands(node, facts.profile, facts.nowMs),
  }
}

const recoverySentence = ({ recoverability: { recoverable, why } }: DetailFacts): string =>
  recoverable
    ? 'Its recovery has been rehearsed: it would recover without an operator after losing its certificate.'
    : `It is not proven that it would recover without an operator after losing its certificate: ${why}.`

const agentEventOf = ({ at, place, event, code, text, times: count, correlation }: StoryLine): AgentEvent[] => {
  const atMs = parseIsoTime(at)
  const remarks = [...(code === '' ? [] : [code]), ...(count > 1 ? [`${count} times`] : [])].join(', ')
  const what = `${place} ${event}: ${text}${remarks === '' ? '' : ` (${remarks})`}`
  return atMs === null ? [] : [{ atMs, what, correlation }]
}

const lastWord = (node: Node, { observed: { report }, sessions }: DetailFacts): string[] => {
  // A node in a new epoch, which may be another machine, does not answer for what was wrong in the one before.
  if (report === null || !isOfEpoch(node, report.certificate.serial)) return []
  const line = unresolvedFailure(report.story, latestChannelMs(sessions))
  if (line === null) return []
  const { text, next, at, class: failure } = line
  const named = failure === null ? '' : ` (${failure})`
  return [boundedText(`Its agent says: ${withoutFullStop(text)}${named}, at ${at}. Next: ${next}`, 1024)]
}

/** A node that was revoked or quarantined has no certificates, and begins no new epoch before it is registered or enrolled again. */
const isOfEpoch = (node: Node, serial: string): boolean => {
  const slots = slotsOf(node)
  if (slots === null) return node.membership.kind !== 'registered'
  return everySlot(slots).some((slot) => slot.serial === serial)
}

/** Null: none is open, or the replica that has it does not say since when. */
const latestChannelMs = (sessions: readonly OpenSession[]): number | null => {
  const known = sessions.flatMap(({ sinceMs }) => (sinceMs === null ? [] : [sinceMs]))
  return known.length === 0 ? null : Math.max(...known)
}
