// This node in the WireGuard network of its domain. A failure of the network is reported and has no other effect: the identity
// of the node does not depend on its network.

import type { PlanePeers, WireguardConfig, WireguardRequest } from '#wire/network/peers.ts'
import type { AgentCore } from '#agent/core/agent-parts.ts'
import type { AgentConfig } from '#agent/core/config.ts'
import type { NotKept } from '#agent/state/identity-keeper.ts'
import type { AgentRecord } from '#agent/diagnostics/record.ts'
import type { StatusFile } from '#agent/diagnostics/status-file.ts'
import type { AgentStorage } from '#agent/state/storage.ts'
import { tidy } from '#agent/core/trouble.ts'
import { openPeerApplier, type Progress, type Wanted } from './apply-peers.ts'
import { openWireguardKey } from './key-store.ts'
import { openPeerStore, peerSet, type PeerSet } from './peer-store.ts'
import { nothingSoFar, receivePeers, type PeersSoFar } from './receive-peers.ts'
import { likelyLink, openWireguardLink, type LinkKind, type WireguardLink } from './wireguard-link.ts'

export type AppliedPeers = { readonly revision: string; readonly applied: boolean; readonly detail: string | null }

/** The channel a frame came over. */
export type PeersSender = {
  /** Null asks for the whole set. */
  have(revision: string | null): void
  applied(applied: AppliedPeers): void
}

export type WireguardNetwork = {
  /** For an enrollment, its key durable before it is sent. Null: this agent takes no part. */
  request(): { readonly kind: 'request'; readonly body: WireguardRequest | null } | NotKept
  /** The plane will not have this key: the next try is with another. */
  keyRefused(): void
  /** A new identity: the peers of the previous one are dropped. `keyOnDisk`: whether the profile allows keys on disk. */
  enrolled(config: WireguardConfig | null, keyOnDisk: boolean): void
  /** Null: no part in the network; left out by planes that know of none, and then nothing changes. */
  configured(config: WireguardConfig | null | undefined): void
  /** Once what is going on has ended: the revision in force. Left out: this agent has nothing to do with peers. */
  have(): Promise<string | null> | null
  receive(frame: PlanePeers, from: PeersSender): void
  /** What serves the interface, or would; `none`: this agent takes no part, or cannot. */
  kind(): LinkKind | 'none'
  /** Quarantined: the node has no peers any more. */
  removePeers(): void
  /** Revoked: no interface, no peers, no key. */
  withdraw(): Promise<void>
  close(): Promise<void>
}

const noWireguard: WireguardNetwork = {
  request: () => ({ kind: 'request', body: null }),
  keyRefused: () => {},
  enrolled: () => {},
  configured: () => {},
  have: () => null,
  receive: () => {},
  kind: () => 'none',
  removePeers: () => {},
  withdraw: () => Promise.resolve(),
  close: () => Promise.resolve(),
}

type Waiting = { readonly revision: string; readonly from: PeersSender; reportedTrouble: boolean }
const mostWaiting = 4

/** `link`: what to work on instead of this machine. */
export const openWireguard = (
  { timers, random, log }: Pick<AgentCore, 'timers' | 'random' | 'log'>,
  { stateFolder, keyStorage, wireguard }: Pick<AgentConfig, 'stateFolder' | 'keyStorage' | 'wireguard'>,
  record: Pick<AgentRecord, 'facts'>,
  storage: Pick<AgentStorage, 'credentialWrite'>,
  link: WireguardLink | null = null,
): WireguardNetwork => {
  if (wireguard === null) return noWireguard
  const onDisk = keyStorage === 'file'
  const keys = openWireguardKey(stateFolder, onDisk, storage.credentialWrite)
  const store = openPeerStore(stateFolder)
  let planeConfig: WireguardConfig | null = null
  const soFar = new WeakMap<PeersSender, PeersSoFar>()
  let isWithdrawn = false
  let waiting: readonly Waiting[] = []
  let status: NonNullable<StatusFile['wireguard']> = {
    interface: wireguard.interface,
    ...downStatus,
    trouble: null,
  }

  const wanted = (): Wanted | null => {
    const key = keys.current()
    if (planeConfig === null || key === null) return null
    const keepAlive = wireguard.endpoint === null
    return { config: planeConfig, key, set: store.current() ?? noPeers, keepAlive }
  }
  const setStatus = (change: Partial<typeof status>): void => {
    status = { ...status, ...change }
    record.facts({ wireguard: status })
  }
  const answerAll = (revision: string): void => {
    const fitting = waiting.filter((one) => one.revision === revision)
    waiting = waiting.filter((one) => one.revision !== revision)
    for (const { from } of fitting) from.applied({ revision, applied: true, detail: null })
  }
  const progress = (what: Progress): void => {
    switch (what.kind) {
      case 'removed':
        return log.info({ peers: what.keys.length }, 'wireguard: peers removed')
      case 'down':
        answerAll(noPeers.revision)
        return setStatus({ ...downStatus, trouble: isWithdrawn ? null : noPart })
      case 'in-force': {
        const { revision, peers } = what.wanted.set
        const { address } = what.wanted.config
        if (status.revision !== revision) {
          log.info({ revision, peers: peers.size, address, kind: what.link }, 'wireguard: peers in force')
        }
        setStatus({ kind: what.link, address, peers: peers.size, revision, trouble: null })
        return answerAll(revision)
      }
      case 'failed': {
        const { code, text, next } = what.trouble
        log.warn({ code, next, waitMs: Math.round(what.retryMs) }, text)
        setStatus({ revision: null, trouble: { code, text, next } })
        for (const one of waiting) {
          if (!one.reportedTrouble)
            one.from.applied({ revision: one.revision, applied: false, detail: tidy(text, 200) })
          one.reportedTrouble = true
        }
      }
    }
  }
  const lost = (how: string): void => {
    log.warn({ how }, 'wireguard-go has ended; it is started again')
    applier.lost()
  }
  const used = link ?? openWireguardLink(timers, wireguard.interface, onDisk ? stateFolder : null, lost)
  const applier = openPeerApplier(timers, random, used, wanted, progress)
  const keep = (set: PeerSet | null): void => {
    if (set === store.current()) return
    const kept = store.keep(set)
    if (!kept.persisted) log.warn({ why: kept.detail }, 'the peers could not be written; they are in force')
  }
  const configured = (next: WireguardConfig | null): void => {
    planeConfig = next
    if (next !== null && keys.current() === null) return setStatus({ trouble: keyLost })
    applier.apply([])
  }
  setStatus({})

  return {
    request: () => {
      const ensured = keys.ensure()
      if (!('kind' in ensured)) return ensured
      const { endpoint } = wireguard
      return { kind: 'request', body: { public_key: ensured.key.publicKey, underlay_endpoint: endpoint } }
    },
    keyRefused: () => void keys.erase(),
    enrolled: (next, keyOnDisk) => {
      if (!keyOnDisk) keys.leaveDisk()
      isWithdrawn = false
      keep(null)
      configured(next)
    },
    configured: (next) => {
      if (next !== undefined) configured(next)
    },
    have: async () => {
      await applier.settled()
      return applier.inForce()
    },
    receive: (frame, from) => {
      const got = receivePeers(store.current(), soFar.get(from) ?? nothingSoFar, frame)
      soFar.set(from, got.soFar)
      keep(got.have)
      const { revision } = frame
      if (got.next.kind === 'apply')
        waiting = [...waiting, { revision, from, reportedTrouble: false }].slice(-mostWaiting)
      if (got.next.kind !== 'more' || got.removed.length > 0) applier.apply(got.removed)
      if (got.next.kind === 'ask') from.have(null)
      if (got.next.kind === 'give-up') from.applied({ revision, applied: false, detail: 'it is not of that revision' })
    },
    kind: () => status.kind ?? likelyLink(),
    removePeers: () => {
      const had = [...(store.current()?.peers.keys() ?? [])]
      if (had.length === 0) return
      keep(noPeers)
      applier.apply(had)
    },
    withdraw: async () => {
      isWithdrawn = true
      planeConfig = null
      keep(null)
      keys.erase()
      applier.apply([])
      await applier.settled()
    },
    close: () => applier.close(),
  }
}

const noPeers = peerSet(new Map())

const downStatus = { kind: null, address: null, peers: 0, revision: null }

const noPart = {
  code: 'wireguard_not_offered',
  text: 'The plane gives this node no part in the WireGuard network.',
  next: 'Offer it: muster profile set NAME wireguard.mode=offered; then enroll again: muster token create --node ID --replace',
}

const keyLost = {
  code: 'wireguard_key_lost',
  text: 'The plane knows a WireGuard key of this node, and the key is not here any more.',
  next: 'Enroll again with a new token: muster token create --node ID --replace',
}
