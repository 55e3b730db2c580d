// Brings the interface to what is wanted: one worker, one step at a time, what is to go before what is to come, and again
// with growing pauses until it is so.

import type { Cancel, Timers } from '#platform/timers.ts'
import type { Random } from '#platform/random.ts'
import type { WireguardKeyPair } from '#pki/wireguard-key.ts'
import type { WireguardConfig } from '#wire/network/peers.ts'
import { fullJitterMs } from '#agent/core/backoff.ts'
import { tidy, trouble, type Trouble } from '#agent/core/trouble.ts'
import { interfaceText } from './interface-text.ts'
import type { PeerSet } from './peer-store.ts'
import { WireguardFault, type LinkKind, type WireguardLink } from './wireguard-link.ts'

/** `keepAlive`: peers have no address of this node to call, so it keeps the way to them open. */
export type Wanted = {
  readonly config: WireguardConfig
  readonly key: WireguardKeyPair
  readonly set: PeerSet
  readonly keepAlive: boolean
}

export type Progress =
  /** These are off the interface; nothing was added yet. */
  | { readonly kind: 'removed'; readonly keys: readonly string[] }
  | { readonly kind: 'in-force'; readonly link: LinkKind; readonly wanted: Wanted }
  | { readonly kind: 'down' }
  | { readonly kind: 'failed'; readonly trouble: Trouble; readonly retryMs: number }

export type PeerApplier = {
  /** Soon; never two at once. `removed`: keys that go first. */
  apply(removed: readonly string[]): void
  /** Of the set that is on the interface; null: none is, or it is not known which. */
  inForce(): string | null
  /** What is going on has ended, well or not. */
  settled(): Promise<void>
  /** The interface is not what it was. */
  lost(): void
  close(): Promise<void>
}

const firstRetryMs = 1_000
const longestRetryMs = 60_000
/** How often changes made to the interface by hand are undone. */
const lookEveryMs = 30_000

/** `wantedNow`: null means no interface at all. */
export const openPeerApplier = (
  timers: Timers,
  random: Random,
  link: WireguardLink,
  wantedNow: () => Wanted | null,
  progress: (what: Progress) => void,
): PeerApplier => {
  const toRemove = new Set<string>()
  let inForce: Wanted | null = null
  let working: Promise<void> | null = null
  let again = false
  let look = false
  let closed = false
  let attempts = 0
  let cancelRetry: Cancel = () => {}

  const bringDown = async (): Promise<void> => {
    await link.takeDown()
    inForce = null
    toRemove.clear()
    progress({ kind: 'down' })
  }
  const bringUp = async (wanted: Wanted): Promise<void> => {
    const { kind, made } = await link.ensure()
    if (made) inForce = null
    const removed = [...toRemove]
    if (removed.length > 0) {
      await link.remove(removed)
      for (const key of removed) toRemove.delete(key)
      progress({ kind: 'removed', keys: removed })
    }
    if (look && inForce !== null && !hasExactly(await link.peers(), inForce.set)) inForce = null
    look = false
    if (inForce === null || !sameInterface(inForce, wanted)) {
      const { config, key, set, keepAlive } = wanted
      const facts = { privateKey: key.privateKey, listenPort: config.listen_port, peers: set.peers.values() }
      await link.sync(interfaceText({ ...facts, keepAlive }))
    }
    if (inForce === null || !sameAddress(inForce.config, wanted.config)) await link.address(wanted.config)
    inForce = wanted
    progress({ kind: 'in-force', link: kind, wanted })
  }
  const once = async (): Promise<void> => {
    try {
      const wanted = wantedNow()
      await (wanted === null ? bringDown() : bringUp(wanted))
      attempts = 0
    } catch (error) {
      inForce = null
      const retryMs = firstRetryMs + fullJitterMs(attempts, firstRetryMs, longestRetryMs, random.unit())
      attempts += 1
      progress({ kind: 'failed', trouble: troubleOf(error), retryMs })
      if (!closed) cancelRetry = timers.after(retryMs, start, 'background')
    }
  }
  const work = async (): Promise<void> => {
    while (again) {
      again = false
      cancelRetry()
      await once()
    }
    working = null
  }
  const start = (): void => {
    if (closed) return
    again = true
    working ??= work()
  }
  const cancelLooks = timers.every(lookEveryMs, () => {
    if (inForce === null) return
    look = true
    start()
  })

  return {
    apply: (removed) => {
      for (const key of removed) toRemove.add(key)
      start()
    },
    inForce: () => inForce?.set.revision ?? null,
    settled: async () => {
      await working
    },
    lost: () => {
      inForce = null
      start()
    },
    close: async () => {
      closed = true
      cancelRetry()
      cancelLooks()
      await working
      await link.leave()
    },
  }
}

const sameInterface = (a: Wanted, b: Wanted): boolean =>
  a.set.revision === b.set.revision &&
  a.config.listen_port === b.config.listen_port &&
  a.key.publicKey === b.key.publicKey

const sameAddress = (a: WireguardConfig, b: WireguardConfig): boolean =>
  a.address === b.address && a.network === b.network && a.mtu === b.mtu

const hasExactly = (keys: ReadonlySet<string>, { peers }: PeerSet): boolean =>
  keys.size === peers.size && [...keys].every((key) => peers.has(key))

const troubleOf = (error: unknown): Trouble =>
  error instanceof WireguardFault
    ? error.trouble
    : trouble('wireguard_failed', tidy(String(error), 200), 'The agent retries automatically')
