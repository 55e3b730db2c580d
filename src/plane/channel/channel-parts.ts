// Everything about the channels of this replica, put together: who is here, who was, who else may be asked.

import { withStore, type Core } from '#plane/core/core.ts'
import { openHoldOff } from '#plane/limits/hold-off.ts'
import type { OpenChannels } from '#plane/core/open-channels.ts'
import { openRetryTimes } from '#plane/limits/retry-times.ts'
import type { AgentFigures } from '#plane/node/agent-figures.ts'
import { openReportIntake } from '#plane/node/report-intake.ts'
import { openOverlayIntake } from '#plane/fleet/take-overlay-state.ts'
import { openPeersIntake } from '#plane/network/take-peers-applied.ts'
import { openOutputsIntake } from '#plane/programs/take-outputs-state.ts'
import type { Issuer } from '#plane/core/issuer.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { openAbsences } from '#plane/liveness/absences.ts'
import type { PlaneUrls } from '#plane/core/configuration.ts'
import { openCutCounts } from '#plane/sessions/cut-elsewhere.ts'
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
import type { WriteLimit } from '#plane/limits/write-limit.ts'

type ChannelNeeds = {
  readonly issuer: Pick<Issuer, 'roots' | 'withdrawnIssuers' | 'issuerRoots'>
  readonly urls: () => PlaneUrls
  readonly writeLimit: WriteLimit
  readonly agentFigures: AgentFigures
  readonly onReport: () => void
}

export type ChannelParts = Awaited<ReturnType<typeof openChannelParts>>

export const openChannelParts = async (core: Core, needs: ChannelNeeds) => {
  const { issuer, urls, writeLimit, agentFigures, onReport } = needs
  const { store, feed, clock } = core
  const { replicas } = store
  const sessions = openSessionRegistry(clock, replicas)
  const presence = openPresence(clock)
  const gate = openGate(replicas)
  const holding = openHolding(core, sessions, replicas)
  const silence = openSilence(clock, { sessions, presence, replicas, holding })
  const holdOff = openHoldOff()
  const retryTimes = openRetryTimes(clock)
  const reports = openReportIntake(core, { taken: onReport, recalled: agentFigures.recalled })
  const overlays = openOverlayIntake(core, writeLimit)
  const outputsIntake = openOutputsIntake(core, writeLimit, agentFigures.outputs)
  const updates = openUpdates(core, { issuer, sessions, gate, urls })
  const cuts = openCutCounts(core, replicas)
  const everySession = openEverySession({ sessions, holding, replicas })

  const peerBook = await openPeerBook(store, feed)
  const sendPeers = openSendPeers(core, { book: peerBook, sessions, gate })
  const peersIntake = openPeersIntake(core, writeLimit)
  const peerProofs = openPeerProofs({ book: peerBook, holding, replicas })

  feed.subscribe('channels', followCommits({ sessions, presence, updates, cuts, retryTimes }))
  sessions.onAbsent((node, { closedByHolder }) => {
    presence.left(node, closedByHolder)
    reports.forget(node)
    overlays.forget(node)
    outputsIntake.forget(node)
    agentFigures.gone(node)
    peersIntake.forget(node)
  })
  replicas.onStanding(() => void sessions.mayGoOn())
  const absences = await openAbsences(clock, { presence, sessions, replicas })

  const holders = openHolders(core, { sessions, holding, replicas, silence })
  const channels: OpenChannels = {
    openSessions: (node) => sessions.of(node).map(describeSession),
    everySession: (node) => everySession.of(node),
    isConnected: (node) => everySession.isConnected(node),
    count: () => sessions.count(),
    cutOn: (replica, receipt) => cuts.on(replica, receipt),
    pauseWhile: (node, run) => holdOff.during(node, run),
  }
  return {
    replicas,
    sessions,
    writeLimit,
    presence,
    gate,
    holding,
    holdOff,
    retryTimes,
    reports,
    agentFigures,
    overlays,
    outputsIntake,
    updates,
    peerBook,
    sendPeers,
    peersIntake,
    peerProofs,
    channels,
    holders,
    secondHolders: openSecondHolders({ store, feed, clock }, holders),
    probe: openProbe(core, { sessions, silence, holding, replicas }),
    /** With the store of a leader. */
    async sweepAbsent(asLeader: Store): Promise<void> {
      await absences.refresh()
      await lapseAbsent(withStore(core, asLeader), presence, silence)
    },
  }
}
