// One channel: a WebSocket with our certificate, from the connection to its end. Which ones there are is rotation.ts.

import { markedWord } from '#domain/core/plane-mark.ts'
import { parseIsoTime } from '#platform/clock.ts'
import type { Cancel } from '#platform/timers.ts'
import { openWebSocket, type ClientWebSocket } from '#platform/web-socket-client.ts'
import {
  channelFrameLimit,
  channelProtocol,
  pingEveryMs,
  pongWithinMs,
  earlierSightingsCapability,
  issuerRootsCapability,
  sightingCapability,
  type AgentFrame,
  type PlaneClosing,
  type PlaneConfig,
  type PlaneHello,
  type PlaneReported,
  type PlaneSighting,
  type PlaneTrust,
} from '#wire/channel/channel.ts'
import { checksCapability, termsCapability } from '#wire/fleet/overlay.ts'
import {
  capabilitiesWithoutDetails,
  overlayCapability,
  overlayDetailsCapability,
  overlayStateWithoutDetails,
  type CapabilityReportBody,
  type OverlayStateBody,
} from '#wire/node/node-runs.ts'
import { peersCapability, type PlanePeers } from '#wire/network/peers.ts'
import type { IssuerRoots } from '#wire/identity/identity-api.ts'
import { connectionCapability, type ReportBody } from '#wire/node/report.ts'
import { outputsCapability, type OutputsStateBody, type PlaneProgramLists } from '#wire/programs/programs-api.ts'
import {
  tasksCapability,
  type PlaneTask,
  type PlaneTaskVerifiers,
  type TasksStateBody,
} from '#wire/tasks/task-frames.ts'
import { musterVersion as agentVersion } from '#platform/this-process.ts'
import { connectAs } from '#agent/link/connect-plane.ts'
import { evidenceHeaders } from '#agent/link/evidence.ts'
import type { Identity } from '#agent/state/credentials.ts'
import { learnTime } from '#agent/link/learn-time.ts'
import type { CallingAgent } from '#agent/link/plane-client.ts'
import { failureFrom, refusalFrom, type PlaneFailure } from '#agent/link/plane-failure.ts'
import type { PeersSender } from '#agent/network/wireguard-network.ts'
import { readPlaneFrame } from './plane-frame.ts'

export type Revisions = { readonly config_revision: number; readonly trust_revision: number }

/** What the agent runs under after a frame, and whether it could be kept. */
export type Applied = Revisions & { readonly persisted: boolean; readonly detail: string | null }

export type ChannelUser = {
  revisions(): Revisions
  config(config: PlaneConfig): Applied
  trust(trust: PlaneTrust): Applied
  reported(reported: PlaneReported): void
  /** The newest sighting there is, to show. */
  sighting(): string | null
  /** Earlier ones than that. */
  earlierSightings(): readonly string[]
  sighted(sighting: PlaneSighting): void
  /** The plane says that its certificates carry its mark. */
  marked(): void
  /** Once it is known, the set of peers in force here; null: this node has no peers, and says nothing of them. */
  peersHave(): Promise<string | null> | null
  peers(peers: PlanePeers, answer: PeersSender): void
  /** There are newer revocation lists for programs. */
  programLists(lists: PlaneProgramLists): void
  /** The helper of this host takes tasks. */
  takesTasks(): boolean
  task(task: PlaneTask): void
  taskVerifiers(verifiers: PlaneTaskVerifiers): void
  /** The set that is on the disk. */
  issuerRootsState(): { readonly revision: number }
  /** True: it is on the disk. */
  issuerRoots(roots: IssuerRoots): boolean
  /** The plane does not have frames of this type. */
  unknown(type: string): void
  /** A frame that could not be used; it is skipped. */
  complaint(why: string): void
}

export type ChannelEnd =
  /** It never opened. */
  | { readonly kind: 'failed'; readonly failure: PlaneFailure }
  /** It was open. `closing` is what the plane said before. */
  | { readonly kind: 'closed'; readonly why: string; readonly closing: PlaneClosing | null }

export type Channel = {
  /** The plane has said hello. Null when it ended before. */
  readonly opened: Promise<PlaneHello | null>
  readonly ended: Promise<ChannelEnd>
  /** Whether the plane answers a ping in that time; a channel that does not is cut. Asked once. */
  answers(withinMs: number): Promise<boolean>
  report(body: ReportBody): void
  /** These two are only sent to a plane that takes them. */
  overlayState(body: OverlayStateBody): void
  capabilities(body: CapabilityReportBody): void
  /** Whether the plane has leaves for programs; known once it has said hello. */
  takesOutputs(): boolean
  /** Only sent to a plane that takes it. */
  outputsState(body: OutputsStateBody): void
  /** Only sent to a plane that has tasks. */
  tasksState(body: TasksStateBody): void
  /** Sends a close frame; the channel is cut if the plane does not answer it. */
  close(): void
}

const handshakeTimeoutMs = 15_000
const closeWithinMs = 2_000
/** What the ping of the health check carries, and nothing else does. */
const healthCheck = 'health'
/** The plane reads slowly or not at all: nothing we send is worth keeping then. */
const mostWaitingBytes = 1 << 20

const offered = ({ config }: CallingAgent, user: ChannelUser): string[] => [
  outputsCapability,
  issuerRootsCapability,
  ...(user.takesTasks() ? [tasksCapability] : []),
  ...(config.wireguard === null ? [] : [peersCapability]),
  ...[termsCapability, checksCapability],
]

export const openChannel = (agent: CallingAgent, identity: Identity, url: string, user: ChannelUser): Channel => {
  const opened = Promise.withResolvers<PlaneHello | null>()
  const ended = Promise.withResolvers<ChannelEnd>()
  const giveUp = new AbortController()
  const cancels = new Set<Cancel>()
  const answered = Promise.withResolvers<boolean>()
  let socket: ClientWebSocket | null = null
  let cutBecause: string | null = null
  let hello = false
  let takesOverlay = false
  let takesConnection = false
  let takesDetails = false
  let takesOutputs = false
  let hasTasks = false
  let isHealthy = false
  let isClosing = false
  let closing: PlaneClosing | null = null
  let sent = 0
  let handled = 0
  let receivedAtMs = agent.clock.monotonicMs()
  const askedAt = agent.clock.reading()

  const end = (how: ChannelEnd): void => {
    for (const cancel of cancels) cancel()
    opened.resolve(null)
    answered.resolve(false)
    ended.resolve(how)
  }
  const endedFor = (error: Error): void =>
    end(
      hello
        ? { kind: 'closed', why: error.message, closing }
        : { kind: 'failed', failure: failureFrom(error, url, agent.clock.nowMs()) },
    )
  const cut = (why: string): void => {
    cutBecause = why
    socket?.destroy()
    giveUp.abort()
  }
  // A plane that takes the upgrade and then says nothing is as good as none.
  const noHello = (): void => {
    if (!hello) cut('the plane has not said hello')
  }

  const unanswered = (): void => {
    if (!isHealthy) cut('a ping was not answered in time')
  }

  const connect = async (): Promise<void> => {
    const connected = await connectAs(agent, identity, new URL(url), giveUp.signal)
    if (connected.kind !== 'connected') return end({ kind: 'failed', failure: connected })
    if (giveUp.signal.aborted) {
      connected.socket.destroy()
      return end({ kind: 'failed', failure: { kind: 'stopped' } })
    }
    cancels.add(agent.timers.after(handshakeTimeoutMs * 2, noHello, 'background'))
    socket = openWebSocket(
      {
        connection: connected.socket,
        url,
        protocol: channelProtocol,
        headers: evidenceHeaders(agent, identity),
        longestMessage: channelFrameLimit,
        handshakeTimeoutMs,
      },
      {
        opened: () => {
          receivedAtMs = agent.clock.monotonicMs()
          send('hello', { agent_version: agentVersion, capabilities: offered(agent, user), ...user.revisions() })
        },
        received: () => {
          receivedAtMs = agent.clock.monotonicMs()
          if (hello) agent.record.count({ kind: 'exchanged' })
        },
        pong: (payload) => {
          if (payload !== healthCheck) return
          isHealthy = true
          answered.resolve(true)
        },
        binary: () => user.complaint('a binary frame, which this agent does not take'),
        text: (message) => receive(message),
        refused: (status, retryAfter, body) => {
          const certificate = { notAfterMs: identity.current.notAfterMs, nowMs: agent.clock.nowMs() }
          end({ kind: 'failed', failure: refusalFrom(status, retryAfter, body, { at: 'runtime', certificate }) })
        },
        failed: endedFor,
        closed: (code, reason) =>
          endedFor(new Error(cutBecause ?? `closed with ${code}${reason === '' ? '' : `: ${reason.slice(0, 128)}`}`)),
      },
    )
  }

  const send = <T extends AgentFrame['type']>(type: T, body: Extract<AgentFrame, { type: T }>['body']): void => {
    if (socket === null) return
    if (socket.waitingBytes() > mostWaitingBytes) return cut('the plane does not read')
    sent += 1
    socket.send(JSON.stringify({ stream: 0, seq: sent, ack: handled, type, body }, wellFormed))
  }

  const watch = (planePingsEveryMs: number): void => {
    const everyMs = Math.min(planePingsEveryMs, pingEveryMs)
    const silenceMs = Math.min(pongWithinMs, 3 * everyMs)
    cancels.add(
      agent.timers.every(everyMs, () => {
        if (agent.clock.monotonicMs() - receivedAtMs > silenceMs) cut('the plane is silent')
        else socket?.ping('')
      }),
    )
  }

  const greeted = (said: PlaneHello): void => {
    if (hello) return
    hello = true
    watch(said.ping_every_ms)
    // From a server that has proved itself just now, so it may be believed about the time.
    const timeMs = parseIsoTime(said.server_time)
    if (timeMs !== null) learnTime(agent, timeMs, askedAt)
    agent.record.count({ kind: 'exchanged' })
    if (said.capabilities.includes(markedWord)) user.marked()
    takesOverlay = said.capabilities.includes(overlayCapability)
    takesConnection = said.capabilities.includes(connectionCapability)
    takesDetails = said.capabilities.includes(overlayDetailsCapability)
    takesOutputs = said.capabilities.includes(outputsCapability)
    hasTasks = said.capabilities.includes(tasksCapability)
    if (said.capabilities.includes(sightingCapability)) {
      const earlier = said.capabilities.includes(earlierSightingsCapability) ? user.earlierSightings() : []
      send('sighting', { statement: user.sighting(), ...(earlier.length > 0 && { earlier: [...earlier] }) })
    }
    if (said.capabilities.includes(peersCapability)) void user.peersHave()?.then(peersSender.have)
    if (said.capabilities.includes(issuerRootsCapability)) send('issuer_roots_state', user.issuerRootsState())
    opened.resolve(said)
  }

  const peersSender: PeersSender = {
    have: (revision) => send('peers_have', { revision }),
    applied: (applied) => send('peers_applied', applied),
  }

  const receive = (message: string): void => {
    const read = readPlaneFrame(message)
    if (read.kind === 'malformed') return user.complaint(read.why)
    if (read.kind === 'unknown') {
      handled = Math.max(handled, read.seq)
      return send('unknown_type', { type: read.type })
    }
    const { frame } = read
    handled = Math.max(handled, frame.seq)
    switch (frame.type) {
      case 'hello':
        return greeted(frame.body)
      case 'config':
        return send('applied', user.config(frame.body))
      case 'trust':
        return send('applied', user.trust(frame.body))
      case 'reported':
        return user.reported(frame.body)
      case 'sighting':
        return user.sighted(frame.body)
      case 'peers':
        return user.peers(frame.body, peersSender)
      case 'program_lists':
        return user.programLists(frame.body)
      case 'task':
        return user.task(frame.body)
      case 'task_verifiers':
        return user.taskVerifiers(frame.body)
      case 'issuer_roots':
        // What is not on the disk is not confirmed: the next channel says it.
        if (user.issuerRoots(frame.body)) send('issuer_roots_state', user.issuerRootsState())
        return
      case 'closing':
        closing = frame.body
        return
      case 'unknown_type':
        return user.unknown(frame.body.type)
    }
  }

  connect().catch((bug: unknown) => {
    opened.resolve(null)
    ended.reject(bug)
  })

  return {
    opened: opened.promise,
    ended: ended.promise,
    answers: (withinMs) => {
      cancels.add(agent.timers.after(withinMs, unanswered, 'background'))
      socket?.ping(healthCheck)
      return answered.promise
    },
    report: ({ connection, ...body }) =>
      send('report', takesConnection && connection !== undefined ? { ...body, connection } : body),
    overlayState: (body) => {
      if (takesOverlay) send('overlay_state', takesDetails ? body : overlayStateWithoutDetails(body))
    },
    capabilities: (body) => {
      if (takesOverlay) send('capabilities', takesDetails ? body : capabilitiesWithoutDetails(body))
    },
    takesOutputs: () => takesOutputs,
    outputsState: (body) => void (takesOutputs && send('outputs_state', body)),
    tasksState: (body) => void (hasTasks && send('tasks_state', body)),
    close: () => {
      if (isClosing) return
      isClosing = true
      if (socket === null) return giveUp.abort()
      cancels.add(agent.timers.after(closeWithinMs, () => cut('it was closed'), 'background'))
      socket.close(1000, '')
    },
  }
}

/** Text that was cut to a length may end in half of a surrogate pair: the plane would end the channel for it. */
const wellFormed = (_key: string, value: unknown): unknown => (typeof value === 'string' ? value.toWellFormed() : value)
