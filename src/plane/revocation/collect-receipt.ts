// Collects the proofs of a receipt. The replica that withdrew an identity asks every replica and looks at every peer for some
// seconds; the leader goes on with a receipt that is open after that, also when the first replica has died.

import { everySlot, slotsOf } from '#domain/core/certificate.ts'
import type { Row } from '#domain/core/change.ts'
import type { Node, NodeId } from '#domain/core/node.ts'
import type { Receipt, ReplicaProof } from '#domain/revocation/receipt.ts'
import {
  decideReceipt,
  effective,
  hasProof,
  noFates,
  settled,
  stragglersOf,
  withJoinedPeers,
  withPeerProof,
  withReplicaProof,
} from '#domain/revocation/receipt-rules.ts'
import { sleep } from '#platform/timers.ts'
import { commitOnce } from '#plane/core/commit-decision.ts'
import type { OpenChannels, PeerProofs } from '#plane/core/open-channels.ts'
import type { Core, FlowCore } from '#plane/core/core.ts'

export type ReceiptCore = Omit<Core, 'random' | 'feed'> & Pick<FlowCore, 'feed'>

/** Where the proofs of a receipt come from. */
export type ProofSources = { readonly channels: Pick<OpenChannels, 'cutOn'>; readonly peers: PeerProofs }

/** One receipt on its way. */
export type Collecting = {
  readonly core: ReceiptCore
  readonly sources: ProofSources
  /** This replica has decided the withdrawal itself. */
  readonly isOwn: boolean
  /** Replicas that had a lease at some time since: what became of each is in the receipt. */
  readonly seen: Map<number, string>
  /** The time of a proof. */
  now(): number
}

/** How far the clocks of database machines may be apart, or be set, without a lease being taken to be over too early. */
const leaseSkewMs = 2000

/** One question to every replica that has not answered yet; `progress` is called with each answer. */
export const askReplicas = async (
  { core, sources, isOwn, seen, now }: Collecting,
  receipt: Receipt,
  progress: (receipt: Receipt) => void,
): Promise<Receipt> => {
  const { replicas } = core.store
  const listed = await replicas.leasedOrOverSince(leaseSkewMs)
  const leased = listed.map(({ number }) => number)
  for (const { number, name } of listed) seen.set(number, name)
  let proven = receipt
  const add = (proof: ReplicaProof): void => {
    proven = withReplicaProof(proven, proof)
    progress(proven)
  }
  for (const [replica, name] of seen)
    if (!leased.includes(replica)) add({ replica, name, how: 'lease', channels: 0, atMs: now() })
  const asked = listed.filter(({ number }) => !hasProof(receipt, number))
  await Promise.all(
    asked.map(async ({ number: replica, name }) => {
      const channels = await sources.channels.cutOn(replica, receipt.id)
      const how = isOwn && replica === replicas.self ? 'itself' : 'acknowledged'
      if (channels !== null) add({ replica, name, how, channels, atMs: now() })
    }),
  )
  return effective(withJoinedPeers(proven, peersNow(sources, receipt)), leased, now())
}

/** Who is a peer of its peers by now. */
const peersNow = ({ peers }: ProofSources, receipt: Receipt): readonly NodeId[] => {
  const [first] = stragglersOf(receipt)
  return first === undefined ? [] : peers.peersOf(first.node)
}

/** What the agents of its peers have said by now. */
export const lookAtPeers = async (
  { store }: Pick<Core, 'store'>,
  { peers }: ProofSources,
  receipt: Receipt,
): Promise<Receipt> => {
  const stragglers = stragglersOf(receipt)
  if (receipt.peers === null || stragglers.length === 0) return receipt
  const confirmed = await peers.peersWithout(
    receipt.peers.publicKey,
    stragglers.map(({ node }) => node),
  )
  const looked = withPeerProof(receipt, { ...noFates, confirmed })
  // Each agent says so to the plane that has its channel, and the time is that plane's.
  return looked === receipt || store.replicas.count() === 1 ? looked : { ...looked, clocks: 'of several planes' }
}

/** What became of those who have said nothing, and until when they are waited for. */
export const lookAtStragglers = async (
  { store, clock }: Pick<Core, 'store' | 'clock'>,
  receipt: Receipt,
): Promise<Receipt> => {
  const stragglers = stragglersOf(receipt)
  if (receipt.peers === null || stragglers.length === 0) return receipt
  const isBack = hasKey(await store.get('node', receipt.node), receipt.peers.publicKey)
  if (isBack) return withPeerProof(receipt, { ...noFates, left: stragglers.map(({ node }) => node) })
  const rows = await Promise.all(stragglers.map(async ({ node }) => ({ node, row: await store.get('node', node) })))
  const ends = rows.map(({ node, row }) => ({ node, endsMs: memberUntilMs(row) }))
  const nowMs = clock.nowMs()
  return withPeerProof(receipt, {
    ...noFates,
    left: ends.filter(({ endsMs }) => endsMs === null).map(({ node }) => node),
    ended: ends.filter(({ endsMs }) => endsMs !== null && endsMs <= nowMs).map(({ node }) => node),
    deadlines: new Map(ends.flatMap(({ node, endsMs }) => (endsMs === null ? [] : [[node, endsMs] as const]))),
  })
}

/** Released from quarantine and back: its peers get its key again. */
const hasKey = (row: Row<Node> | null, publicKey: string): boolean =>
  row !== null && row.value.wireguard?.publicKey === publicKey && memberUntilMs(row) !== null

/** Null: it is no longer a member. */
const memberUntilMs = (row: Row<Node> | null): number | null => {
  if (row === null || row.value.wireguard === null || row.value.membership.kind === 'quarantined') return null
  const slots = slotsOf(row.value)
  return slots === null ? null : Math.max(...everySlot(slots).map(({ notAfterMs }) => notAfterMs))
}

/** The receipt in the store now: if another replica was quicker, its version counts. */
export const keep = async (
  { store, feed, clock }: Pick<FlowCore, 'store' | 'feed' | 'clock'>,
  before: Row<Receipt>,
  receipt: Receipt,
): Promise<Row<Receipt>> => {
  const verdict = decideReceipt({ before, receipt, nowMs: clock.nowMs() })
  if (verdict === null) return before
  await commitOnce({ store, feed }, verdict.change)
  const row = await store.get('receipt', receipt.id)
  if (row === null) throw new Error(`the receipt ${receipt.id} is not in the store`)
  return row
}

export const collectMs = 5000
const firstStepMs = 50
const longestStepMs = 500

/**
 * Ends when it is settled, or when the time is over: then the store has what is proven, and who is still waited for. `progress` is
 * called whenever more is known.
 */
export const collect = async (
  collecting: Collecting,
  opened: Row<Receipt>,
  progress: (receipt: Receipt) => void,
): Promise<void> => {
  const { core, sources, now } = collecting
  const beganMs = core.clock.monotonicMs()
  const inTime = (): boolean => core.clock.monotonicMs() - beganMs < collectMs
  let row = opened
  let receipt = opened.value
  const write = async (next: Receipt): Promise<void> => {
    row = await keep(core, row, next)
    receipt = row.value
    progress(receipt)
  }
  for (let stepMs = firstStepMs; receipt.settledAtMs === null && inTime();) {
    try {
      if (receipt.effectiveAtMs === null) {
        receipt = await askReplicas(collecting, receipt, progress)
        if (receipt.effectiveAtMs !== null) await write(settled(receipt, now()))
      } else {
        receipt = await lookAtPeers(core, sources, receipt)
        if (stragglersOf(receipt).length === 0) await write(settled(receipt, now()))
      }
    } catch (error) {
      core.log.warn({ err: error, receipt: receipt.id }, 'the proofs of a withdrawal could not be collected; again')
    }
    if (receipt.settledAtMs !== null) return
    // In the background: a plane that stops does not wait, and another goes on with what is open.
    await sleep(core.timers, stepMs, 'background')
    stepMs = Math.min(longestStepMs, stepMs * 2)
  }
  const looked = receipt.effectiveAtMs === null ? receipt : await lookAtStragglers(core, receipt)
  await write(settled(looked, now()))
}
