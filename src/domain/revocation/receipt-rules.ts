// How a receipt grows. A proof is only ever added, one that is repeated changes nothing, and of two planes that collect at
// once neither takes back what the other has found: what is returned unchanged is the same object.

import {
  decided,
  entry,
  type Attribution,
  type Decided,
  readOf,
  type Row,
  type ChangePart,
} from '#domain/core/change.ts'
import type { Node, NodeId } from '#domain/core/node.ts'
import type { PeerProof, Receipt, ReplicaProof, Straggler } from './receipt.ts'

export type OpeningFacts = {
  readonly id: string
  readonly kind: Receipt['kind']
  /** As it was until now. */
  readonly node: Node
  readonly reason: string
  readonly certificates: readonly string[]
  /** Whose WireGuard peer it was. */
  readonly peers: readonly NodeId[]
  readonly by: Attribution
  readonly nowMs: number
}

export const openReceipt = ({ id, kind, node, reason, certificates, peers, by, nowMs }: OpeningFacts): Receipt => {
  // It never had a certificate: there is nothing that any replica could accept.
  const atOnceMs = node.epoch === 0 ? nowMs : null
  return {
    id,
    kind,
    node: node.id,
    epoch: node.epoch,
    reason,
    by: by.actor,
    decidedAtMs: nowMs,
    certificates,
    replicas: [],
    peers:
      node.wireguard === null ? null : { ...noPeerProof(node.wireguard.publicKey), stragglers: peers.map(straggler) },
    effectiveAtMs: atOnceMs,
    settledAtMs: atOnceMs,
    clocks: 'of the plane that decided',
  }
}

const noPeerProof = (publicKey: string): PeerProof => ({
  publicKey,
  confirmed: 0,
  lastConfirmedAtMs: null,
  left: 0,
  ended: [],
  stragglers: [],
})

const straggler = (node: NodeId): Straggler => ({ node, deadlineMs: null })

/** Once it is effective no other replica has to confirm: one that starts later loads the denials. */
export const withReplicaProof = (receipt: Receipt, proof: ReplicaProof): Receipt =>
  receipt.effectiveAtMs !== null || hasProof(receipt, proof.replica)
    ? receipt
    : { ...receipt, replicas: [...receipt.replicas, proof] }

export const hasProof = ({ replicas }: Receipt, replica: number): boolean =>
  replicas.some((proof) => proof.replica === replica)

/**
 * `leased`: every replica that may act, read after the withdrawal was committed. A replica that is not among them loads the
 * denials before it acts again.
 */
export const effective = (receipt: Receipt, leased: readonly number[], nowMs: number): Receipt =>
  receipt.effectiveAtMs !== null || leased.length === 0 || !leased.every((replica) => hasProof(receipt, replica))
    ? receipt
    : { ...receipt, effectiveAtMs: Math.max(nowMs, receipt.decidedAtMs) }

/** The results of the peers that had to drop the key; results of other nodes are ignored. */
export type PeerFates = {
  /** And when. */
  readonly confirmed: ReadonlyMap<NodeId, number>
  readonly left: readonly NodeId[]
  readonly ended: readonly NodeId[]
  readonly deadlines: ReadonlyMap<NodeId, number>
}

export const noFates: PeerFates = { confirmed: new Map(), left: [], ended: [], deadlines: new Map() }

export const withPeerProof = (receipt: Receipt, fates: PeerFates): Receipt => {
  const { peers } = receipt
  if (peers === null) return receipt
  const left = new Set(fates.left)
  const ended = new Set(fates.ended)
  const proof = { ...peers, ended: [...peers.ended], stragglers: [] as Straggler[] }
  let changed = false
  for (const straggler of peers.stragglers) {
    const { node } = straggler
    const confirmedMs = fates.confirmed.get(node)
    if (confirmedMs !== undefined) {
      proof.confirmed++
      proof.lastConfirmedAtMs = Math.max(confirmedMs, proof.lastConfirmedAtMs ?? confirmedMs)
    } else if (left.has(node)) proof.left++
    else if (ended.has(node)) proof.ended.push(node)
    else {
      const deadlineMs = fates.deadlines.get(node) ?? straggler.deadlineMs
      proof.stragglers.push({ node, deadlineMs })
      if (deadlineMs === straggler.deadlineMs) continue
    }
    changed = true
  }
  return changed ? { ...receipt, peers: proof } : receipt
}

/**
 * Nodes that became peers of its peers while the withdrawal was on its way to every replica: a replica may have sent them the
 * key. Once every replica knows, no node gets the key any more.
 */
export const withJoinedPeers = (receipt: Receipt, now: readonly NodeId[]): Receipt => {
  const { peers } = receipt
  if (peers === null || receipt.effectiveAtMs !== null) return receipt
  const before = new Set([receipt.node, ...peers.stragglers.map(({ node }) => node)])
  const joined = [...new Set(now)].filter((node) => !before.has(node))
  return joined.length === 0
    ? receipt
    : { ...receipt, peers: { ...peers, stragglers: [...peers.stragglers, ...joined.map(straggler)] } }
}

export const settled = (receipt: Receipt, nowMs: number): Receipt =>
  receipt.effectiveAtMs === null || receipt.settledAtMs !== null || stragglersOf(receipt).length > 0
    ? receipt
    : { ...receipt, settledAtMs: Math.max(nowMs, receipt.effectiveAtMs) }

export const stragglersOf = ({ peers }: Receipt): readonly Straggler[] => (peers === null ? [] : peers.stragglers)

/** How many peers had to drop the key. */
export const peersExpected = ({ confirmed, left, ended, stragglers }: PeerProof): number =>
  confirmed + left + ended.length + stragglers.length

export const channelsCut = ({ replicas }: Receipt): number => replicas.reduce((sum, { channels }) => sum + channels, 0)

/** In milliseconds since it was decided; null: not yet, or there was none. */
export const latencyOf = (receipt: Receipt) => {
  const since = (ms: number | null): number | null => (ms === null ? null : Math.max(0, ms - receipt.decidedAtMs))
  const cuts = receipt.replicas.filter(({ channels }) => channels > 0).map(({ atMs }) => atMs)
  return {
    effectiveMs: since(receipt.effectiveAtMs),
    lastCutMs: since(cuts.length === 0 ? null : Math.max(...cuts)),
    lastPeerMs: since(receipt.peers === null ? null : receipt.peers.lastConfirmedAtMs),
  }
}

// What is written of a receipt: with the withdrawal, and as its proofs come in. The journal records when it became effective,
// which peers it still waited for, and when it was settled; not every proof.

/** Goes into the transaction that takes the identity away. */
export const receiptOpened = (receipt: Receipt): ChangePart => ({
  reads: [readOf('receipt', receipt.id, null)],
  writes: [{ put: 'receipt', value: receipt }],
})

/** An action of the plane itself has no source. */
const collector = { actor: 'system:receipts', source: null, correlation: null } as const
/** The number of stragglers that are named. */
const mostNamed = 20

export type ReceiptFacts = { readonly before: Row<Receipt>; readonly receipt: Receipt; readonly nowMs: number }

/** Null: there is nothing that a reader of the journal would want to know. */
export const decideReceipt = ({ before, receipt, nowMs }: ReceiptFacts): Decided | null => {
  const { id, node, epoch } = receipt
  const { effectiveMs, lastPeerMs } = latencyOf(receipt)
  const say = (type: 'receipt.effective' | 'receipt.straggling' | 'receipt.settled', body: object) =>
    entry(collector, nowMs, type, { node, epoch }, { receipt: id, ...body })
  const waitsFor = stragglersOf(receipt)
  const entries = [
    ...(before.value.effectiveAtMs === null && receipt.effectiveAtMs !== null
      ? [
          say('receipt.effective', {
            after_ms: Math.round(effectiveMs ?? 0),
            channels_cut: channelsCut(receipt),
            replicas: receipt.replicas.map(({ replica, how }) => `${replica} ${how}`),
          }),
        ]
      : []),
    ...(replicasMissing(before.value, receipt) || deadlinesFound(before.value, receipt)
      ? [
          say('receipt.straggling', {
            replicas_heard_from: receipt.replicas.length,
            effective: receipt.effectiveAtMs !== null,
            peers: waitsFor.length,
            nodes: waitsFor.slice(0, mostNamed).map((straggler) => straggler.node),
          }),
        ]
      : []),
    ...(before.value.settledAtMs === null && receipt.settledAtMs !== null
      ? [
          say('receipt.settled', {
            peers_confirmed: receipt.peers === null ? 0 : receipt.peers.confirmed,
            peers_left: receipt.peers === null ? 0 : receipt.peers.left,
            peers_ended: receipt.peers === null ? 0 : receipt.peers.ended.length,
            last_peer_after_ms: lastPeerMs === null ? null : Math.round(lastPeerMs),
          }),
        ]
      : []),
  ] as const
  const [first, ...more] = entries
  if (first === undefined) return null
  return decided({
    reads: [readOf('receipt', id, before)],
    writes: [{ put: 'receipt', value: receipt }],
    entries: [first, ...more],
  })
}

/** Some replicas have answered, and others not: the proofs so far are kept for the replica that goes on with it. */
const replicasMissing = (before: Receipt, receipt: Receipt): boolean =>
  receipt.effectiveAtMs === null && receipt.replicas.length > before.replicas.length

/** Once: from then on it is known who is waited for, and until when. */
const deadlinesFound = (before: Receipt, receipt: Receipt): boolean =>
  stragglersOf(before).some(({ deadlineMs }) => deadlineMs === null) &&
  stragglersOf(receipt).length > 0 &&
  stragglersOf(receipt).every(({ deadlineMs }) => deadlineMs !== null)
