// Sends peer domains the machines that are active here, and gets in the answer which of them are active there. Only the leader
// does it. Nothing waits for it: a peer that is away is tried again, and gets the state of that moment, not everything it missed.

import type { Attribution } from '#domain/core/change.ts'
import type { Node, NodeId } from '#domain/core/node.ts'
import { claimKeptMs, type PeerDomain } from '#domain/federation/peer-domain.ts'
import { everyNode } from '#plane/core/pages.ts'
import { peerDomains } from './peer-domains.ts'
import { claimedState, settleElsewhere, settleEveryElsewhere, takeClaims } from './take-claims.ts'
import { hardwareValues } from '#plane/store/commit/columns.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { mostClaims, mostHardware, type Claims } from '#wire/core/claims.ts'
import { formatStatement } from '#wire/core/statement.ts'
import type { CallPeer } from './call-peer.ts'
import type { Core } from '#plane/core/core.ts'
import type { RecoveryAuthority } from '#plane/authority/recovery-authority.ts'

export type PublishParts = {
  readonly domainName: string
  readonly recovery: Pick<RecoveryAuthority, 'signStatement'>
  readonly call: CallPeer
}

export type ClaimPublisher = { stop(): Promise<void> }

const byItself: Attribution = { actor: 'system:claims', source: null, correlation: null }
const firstPauseMs = 1000
const longestPauseMs = 300_000
/** Well before a claim that is not repeated expires. */
const repeatEveryMs = claimKeptMs / 30

export const publishClaims = (core: Core, parts: PublishParts): ClaimPublisher => {
  const stopping = new AbortController()
  const peers = new Map<string, Correspondent>()
  /** The last state sent for each node, so that an unchanged one is not sent again. */
  const sent = new Map<NodeId, string>()

  const tell = (node: Node): void => {
    const state = node.hardware.macs.length === 0 && node.hardware.bmcSerial === null ? null : claimedState(node)
    if (state === null || sent.get(node.id) === state) return
    // A machine that was not active before either need not be sent.
    if (state === 'active' || sent.has(node.id)) for (const peer of peers.values()) peer.add(node.id)
    if (state === 'active') sent.set(node.id, state)
    else sent.delete(node.id)
    if (peers.size > 0) settleElsewhere(core, node.id, byItself).catch(notSettled)
  }
  const notSettled = (error: unknown): void =>
    core.log.warn({ err: error }, 'what other domains say of a machine could not be recorded')

  /** Of everything that was ever let in. */
  const queueAll = async (correspondent: Correspondent): Promise<void> => {
    for await (const { id, hardware, membership } of everyNode(core.store)) {
      if (stopping.signal.aborted) return
      if (hardwareValues(hardware).length === 0 || membership.kind === 'registered') continue
      if (membership.kind === 'active') sent.set(id, 'active')
      correspondent.add(id)
    }
  }
  /** A new peer, or one that another leader has served until now, gets everything. */
  const meet = async (peer: PeerDomain): Promise<void> => {
    peers.get(peer.name)?.stop()
    peers.delete(peer.name)
    if (stopping.signal.aborted) return
    if (peer.removedAtMs !== null) return settleEveryElsewhere(core, byItself)
    const correspondent = openCorrespondent(core, parts, peer, stopping.signal)
    peers.set(peer.name, correspondent)
    await queueAll(correspondent)
  }
  const next = (run: () => Promise<void>): void => {
    underWay = underWay
      .then(run)
      .catch((error: unknown) => core.log.warn({ err: error }, 'claims could not be prepared for peer domains'))
  }
  const met = (peer: PeerDomain): void => next(() => meet(peer))
  const repeat = async (): Promise<void> => {
    await settleEveryElsewhere(core, byItself)
    for (const correspondent of peers.values()) await queueAll(correspondent)
  }
  const cancelRepeat = core.timers.every(repeatEveryMs, () => next(repeat))

  const unsubscribe = core.feed.subscribe('claims', ({ writes }) => {
    for (const write of writes) {
      if (write.put === 'peer-domain') met(write.value)
      else if (write.put === 'node' && peers.size > 0) tell(write.value)
    }
  })
  let underWay: Promise<void> = peerDomains(core.store).then(
    (known) => known.forEach(met),
    (error: unknown) => core.log.warn({ err: error }, 'the peer domains could not be read'),
  )

  return {
    async stop() {
      stopping.abort()
      unsubscribe()
      cancelRepeat()
      for (const peer of peers.values()) peer.stop()
      await underWay
    },
  }
}

type Correspondent = { add(node: NodeId): void; stop(): void }

/** One call at a time; what gathers meanwhile goes with the next. */
const openCorrespondent = (core: Core, parts: PublishParts, peer: PeerDomain, signal: AbortSignal): Correspondent => {
  const waiting = new Set<NodeId>()
  let busy = false
  let stopped = false
  let pauseMs = 0
  let cancel = (): void => {}

  const work = async (): Promise<void> => {
    busy = true
    while (waiting.size > 0 && !stopped && !signal.aborted) {
      try {
        await sendSome(core, parts, peer, waiting, signal)
        if (pauseMs > 0) core.log.info({ peer: peer.name }, 'the peer domain takes claims again')
        pauseMs = 0
      } catch (error) {
        if (stopped || signal.aborted) break
        if (pauseMs === 0)
          core.log.warn({ err: error, peer: peer.name }, 'claims could not be sent to a peer domain; retrying later')
        pauseMs = Math.min(longestPauseMs, Math.max(firstPauseMs, 2 * pauseMs))
        await new Promise<void>((resolve) => {
          const end = core.timers.after(pauseMs, resolve, 'background')
          cancel = () => {
            end()
            resolve()
          }
        })
      }
    }
    busy = false
  }

  return {
    add(node) {
      waiting.add(node)
      if (!busy) void work()
    },
    stop() {
      stopped = true
      cancel()
    },
  }
}

/** Throws if the peer could not be reached; then all of them still wait. */
const sendSome = async (
  core: Core,
  { domainName, recovery, call }: PublishParts,
  peer: PeerDomain,
  waiting: Set<NodeId>,
  signal: AbortSignal,
): Promise<void> => {
  const ids = [...waiting.values().take(mostClaims)]
  // Removed first: a change during the call adds them again.
  for (const id of ids) waiting.delete(id)
  try {
    const { machines, left } = await machinesOf(core.store, ids)
    for (const id of left) waiting.add(id)
    if (machines.length === 0) return
    const atMs = core.clock.nowMs()
    const claims: Claims = { domain: domainName, to: peer.name, at_ms: atMs, machines }
    const answer = await call(
      peer,
      formatStatement('claims', claims, (bytes) => recovery.signStatement(bytes)),
      signal,
    )
    await takeClaims(core, peer.name, { at_ms: atMs, machines: answer.machines }, byItself)
  } catch (error) {
    for (const id of ids) waiting.add(id)
    throw error
  }
}

/** Their state now. `left`: those that would make the statement too long. */
const machinesOf = async (
  store: Store,
  ids: readonly NodeId[],
): Promise<{ readonly machines: Claims['machines']; readonly left: readonly NodeId[] }> => {
  const machines: Claims['machines'] = []
  let count = 0
  for (const [at, id] of ids.entries()) {
    const node = await store.get('node', id)
    const hardware = node === null ? [] : [...hardwareValues(node.value.hardware)]
    if (node === null || hardware.length === 0) continue
    if (count + hardware.length > mostHardware) return { machines, left: ids.slice(at) }
    count += hardware.length
    machines.push({ node: id, hardware, state: claimedState(node.value) })
  }
  return { machines, left: [] }
}
