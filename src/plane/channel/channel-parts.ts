// Everything about the channels of this replica, put together: who is here, who was, who else may be asked.

import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import type { Timers } from '#platform/timers.ts'
import type { Feed } from '#plane/core/feed.ts'
import { openHoldOff } from '#plane/limits/hold-off.ts'
import type { OpenChannels } from '#plane/core/open-channels.ts'
import { openReturnSlots } from '#plane/limits/return-slots.ts'
import { openReportIntake } from '#plane/node/report-intake.ts'
import { openOverlayIntake } from '#plane/fleet/take-overlay-state.ts'
import { openPeersIntake } from '#plane/network/take-peers-applied.ts'
import type { Issuer } from '#plane/core/issuer.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { openAbsences } from '#plane/liveness/absences.ts'
import type { PlaneUrls } from '#plane/core/configuration.ts'
import { openCutRecord } from '#plane/sessions/cut-elsewhere.ts'
import { describeSession, openEverySession } from '#plane/sessions/every-session.ts'
import { openHolders } from '#plane/identity/holders.ts'
import { openSecondHolders } from '#plane/identity/second-holder.ts'
import { followCommits } from './follow-commits.ts'
import { openGate } from '#plane/cluster/gate.ts'
import { openHolding } from '#plane/sessions/holding.ts'
import { lapseAbsent } from '#plane/liveness/lapse-nodes.ts'
import { openPeerBook } from '#plane/network/peer-book.ts'
import { openPeerProofs } from '#plane/network/peer-proofs.ts'
import { openPresence } from '#plane/liveness/presence.ts'
import { openProbe } from '#plane/liveness/probe.ts'
import { openSendPeers } from '#plane/network/send-peers.ts'
import { openSessionRegistry } from '#plane/sessions/session-registry.ts'
import { openSilence } from '#plane/liveness/silence.ts'
import { openUpdates } from './updates.ts'

export type ChannelPartsDeps = {
  readonly store: Store
  readonly feed: Feed
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Log
  readonly issuer: Pick<Issuer, 'roots' | 'withdrawnIssuers'>
  readonly urls: () => PlaneUrls
  readonly onReport: () => void
}

export const openChannelParts = async (deps: ChannelPartsDeps) => {
  const { store, feed, clock, log } = deps
  const { replicas } = store
  const sessions = openSessionRegistry(clock, replicas)
  const presence = openPresence(clock)
  const gate = openGate(replicas)
  const holding = openHolding({ sessions, replicas, clock, log })
  const silence = openSilence({ sessions, presence, clock, replicas, claimAgain: holding.claimAgain })
  const base = { ...deps, replicas, sessions, presence, gate, holding, silence }
  const holdOff = openHoldOff()
  const reports = openReportIntake({ store, log, onTaken: deps.onReport })
  const overlays = openOverlayIntake()
  const updates = openUpdates(base)
  const cuts = openCutRecord(base)
  const everySession = openEverySession(base)

  const book = await openPeerBook(store, feed)
  const sendPeers = openSendPeers({ ...base, book })
  const peersIntake = openPeersIntake()
  const peerProofs = openPeerProofs({ ...base, book })

  const returns = openReturnSlots(clock)
  feed.subscribe('channels', followCommits({ sessions, presence, updates, cuts, returns }))
  sessions.onAbsent((node, { closedByHolder }) => {
    presence.left(node, closedByHolder)
    reports.forget(node)
    overlays.forget(node)
    peersIntake.forget(node)
  })
  replicas.onStanding(() => void sessions.mayGoOn())
  const absences = await openAbsences(base)

  const holders = openHolders(base)
  const channels: OpenChannels = {
    openSessions: (node) => sessions.of(node).map(describeSession),
    everySession: (node) => everySession.of(node),
    isConnected: (node) => everySession.isConnected(node),
    count: () => sessions.count(),
    cutOn: (replica, receipt) => cuts.on(replica, receipt),
    heldOff: (node, run) => holdOff.during(node, run),
  }
  return {
    replicas,
    sessions,
    presence,
    gate,
    holding,
    holdOff,
    returns,
    reports,
    overlays,
    updates,
    peerBook: book,
    sendPeers,
    peersIntake,
    peerProofs,
    channels,
    holders,
    secondHolders: openSecondHolders({ store, feed, clock, holders }),
    probe: openProbe(base),
    /** With the store of a leader. */
    async sweepAbsent(asLeader: Store): Promise<void> {
      await absences.refresh()
      await lapseAbsent({ store: asLeader, feed, clock, presence, silence })
    },
  }
}
