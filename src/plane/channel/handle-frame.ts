// What the plane does about a frame of an agent.

import { boundedText } from '#domain/core/change.ts'
import { redactSecrets } from '#platform/secret-shapes.ts'
import { notePersistence } from '#plane/identity/confirm-node.ts'
import type { ReportIntake } from '#plane/node/report-intake.ts'
import { takeReport } from '#plane/node/take-report.ts'
import type { AgentFrame } from '#wire/channel/channel.ts'
import type { ReportBody } from '#wire/node/report.ts'
import { outputsCapability } from '#wire/programs/programs-api.ts'
import { readFrame } from './channel-frames.ts'
import type { Session } from '#plane/sessions/session.ts'
import type { Sightings } from '#plane/continuity/sightings.ts'
import type { Core, FlowCore } from '#plane/core/core.ts'
import type { ChannelParts } from './channel-parts.ts'
import type { TaskSessions } from './task-sessions.ts'

export type FrameParts = {
  readonly channel: Pick<
    ChannelParts,
    | 'sessions'
    | 'gate'
    | 'holdOff'
    | 'updates'
    | 'reports'
    | 'agentFigures'
    | 'overlays'
    | 'outputsIntake'
    | 'sendPeers'
    | 'peersIntake'
    | 'writeLimit'
  >
  readonly sightings: Pick<Sightings, 'shown'>
  readonly tasks: Pick<TaskSessions, 'reported'>
}

type FrameCore = FlowCore & Pick<Core, 'log'>

export const handleFrame = async (
  core: FrameCore,
  parts: FrameParts,
  session: Session,
  text: string,
): Promise<void> => {
  const { sessions, gate, holdOff } = parts.channel
  await holdOff.over(session.principal.id)
  // A replica that is behind may not know that this node has been revoked: its frames wait.
  while (sessions.mayGoOn() && session.alive && !gate.serves()) await gate.opened()
  if (!session.alive) return
  // No frame has a place for a secret; what a report quotes by mistake is not kept.
  const read = readFrame(redactSecrets(text))
  if (read.kind === 'malformed') return session.end('REQUEST_INVALID', read.why)
  if (!session.accept(read.seq)) return session.end('REQUEST_INVALID', 'frames are out of order')
  const isHello = read.kind === 'frame' && read.frame.type === 'hello'
  if (isHello !== (session.revisions === null)) {
    return session.end('REQUEST_INVALID', isHello ? 'a second hello' : 'the first frame is a hello')
  }
  if (read.kind === 'unknown') return session.send({ type: 'unknown_type', body: { type: read.type } })
  return handle(core, parts, session, read.frame)
}

const handle = async (
  core: FrameCore,
  { channel, sightings, tasks }: FrameParts,
  session: Session,
  frame: AgentFrame,
): Promise<void> => {
  const correlation = `session-${session.number}`
  const { principal } = session
  switch (frame.type) {
    case 'hello': {
      const { config_revision: config, trust_revision: trust } = frame.body
      session.offers = new Set(frame.body.capabilities)
      const agentVersion = boundedText(frame.body.agent_version, 64)
      const { evidence } = session
      core.store.observe(principal.id, { agentVersion, source: principal.source, configRevision: config, evidence })
      session.takesOutputs = frame.body.capabilities.includes(outputsCapability)
      await sendAcknowledgement(channel.reports, session)
      return channel.updates.greeted(session, { config, trust })
    }
    case 'report':
      return report(core, channel, session, frame.body)
    case 'applied':
      // A node that may only show evidence was sent nothing to apply.
      if (principal.evidenceOnly) return
      core.store.observe(principal.id, { configRevision: frame.body.config_revision })
      return notePersistence(core, channel.writeLimit, principal, frame.body, correlation)
    case 'overlay_state':
      if (principal.evidenceOnly) return
      return channel.overlays.take(principal, frame.body, correlation)
    case 'capabilities':
      if (!principal.evidenceOnly) core.store.observe(principal.id, { capabilities: frame.body })
      return
    case 'peers_have':
      if (!principal.evidenceOnly) channel.sendPeers.has(session, frame.body.revision)
      return
    case 'peers_applied':
      if (principal.evidenceOnly) return
      if (frame.body.applied) channel.sendPeers.applied(session, frame.body.revision)
      return channel.peersIntake.take(principal, frame.body, correlation)
    case 'outputs_state':
      if (principal.evidenceOnly) return
      return channel.outputsIntake.take(
        principal,
        frame.body.outputs.map(({ place = null, ...output }) => ({ ...output, place })),
        correlation,
      )
    case 'tasks_state':
      if (principal.evidenceOnly) return
      core.store.observe(principal.id, { taskVerifiers: frame.body.verifiers })
      return tasks.reported(session, frame.body)
    case 'issuer_roots_state':
      if (principal.evidenceOnly) return
      core.store.observe(principal.id, { issuerRoots: frame.body.revision })
      return channel.updates.hasIssuerRoots(session, frame.body.revision)
    case 'sighting':
      return sightings.shown(session, frame.body.statement, frame.body.earlier)
    case 'unknown_type':
      return
  }
}

/** So that the agent sends only what has not been taken over an earlier channel. */
const sendAcknowledgement = async (reports: ReportIntake, session: Session): Promise<void> => {
  if (session.evidence === null) return
  const { instance } = session.evidence
  const number = await reports.lastTaken(session.principal.id, instance)
  if (number !== null) session.send({ type: 'reported', body: { instance, number } })
}

const report = async (
  core: FrameCore,
  channel: FrameParts['channel'],
  session: Session,
  body: ReportBody,
): Promise<void> => {
  const { principal, evidence } = session
  if (evidence !== null && evidence.instance !== body.instance) {
    return session.end('REQUEST_INVALID', 'the report is of another process than the channel')
  }
  const correlation = `session-${session.number}`
  const { number, node } = await takeReport(core, channel, { principal, evidence, correlation }, body)
  // A node without a channel is not counted here any more: another replica may have it by now.
  if (node !== null && session.alive) channel.agentFigures.reported(node, body)
  await channel.overlays.again(principal, correlation)
  await channel.outputsIntake.again(principal, correlation)
  session.send({ type: 'reported', body: { instance: body.instance, number } })
}
