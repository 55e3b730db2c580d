// What the plane does about a frame of an agent.

import { boundedText } from '#domain/core/change.ts'
import { redactSecrets } from '#platform/secret-shapes.ts'
import { notePersistence } from '#plane/identity/confirm-node.ts'
import type { HoldOff } from '#plane/limits/hold-off.ts'
import type { WriteLimit } from '#plane/limits/write-limit.ts'
import type { ReportIntake } from '#plane/node/report-intake.ts'
import type { OverlayIntake } from '#plane/fleet/take-overlay-state.ts'
import type { PeersIntake } from '#plane/network/take-peers-applied.ts'
import { takeReport } from '#plane/node/take-report.ts'
import type { AgentFrame } from '#wire/channel/channel.ts'
import type { ReportBody } from '#wire/node/report.ts'
import { readFrame } from './channel-frames.ts'
import type { Gate } from '#plane/cluster/gate.ts'
import type { SendPeers } from '#plane/network/send-peers.ts'
import type { SessionRegistry } from '#plane/sessions/session-registry.ts'
import type { Session } from '#plane/sessions/session.ts'
import type { Sightings } from '#plane/continuity/sightings.ts'
import type { Updates } from './updates.ts'
import type { Core } from '#plane/core/core.ts'

export type FrameDeps = Pick<Core, 'store' | 'feed' | 'clock' | 'log'> & {
  readonly updates: Updates
  readonly holdOff: HoldOff
  readonly writeLimit: WriteLimit
  readonly reports: ReportIntake
  readonly overlays: OverlayIntake
  readonly sendPeers: SendPeers
  readonly peersIntake: PeersIntake
  readonly sightings: Pick<Sightings, 'shown'>
  readonly gate: Pick<Gate, 'serves' | 'opened'>
  readonly sessions: Pick<SessionRegistry, 'mayGoOn'>
}

export const handleFrame = async (deps: FrameDeps, session: Session, text: string): Promise<void> => {
  await deps.holdOff.over(session.principal.id)
  // Whoever is out of touch may not know that this node has been revoked: its frames wait.
  while (deps.sessions.mayGoOn() && session.alive && !deps.gate.serves()) await deps.gate.opened()
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
  return handle(deps, session, read.frame)
}

const handle = async (deps: FrameDeps, session: Session, frame: AgentFrame): Promise<void> => {
  const { principal } = session
  switch (frame.type) {
    case 'hello': {
      const { config_revision: config, trust_revision: trust } = frame.body
      const agentVersion = boundedText(frame.body.agent_version, 64)
      const { evidence } = session
      deps.store.observe(principal.id, { agentVersion, source: principal.source, configRevision: config, evidence })
      await tellTaken(deps, session)
      return deps.updates.greeted(session, { config, trust })
    }
    case 'report':
      return report(deps, session, frame.body)
    case 'applied':
      // Whoever may only show evidence was sent nothing to apply.
      if (principal.evidenceOnly) return
      deps.store.observe(principal.id, { configRevision: frame.body.config_revision })
      return notePersistence(deps, principal, frame.body, `session-${session.number}`)
    case 'overlay_state':
      if (principal.evidenceOnly) return
      return deps.overlays.take(deps, principal, frame.body, `session-${session.number}`)
    case 'capabilities':
      if (!principal.evidenceOnly) deps.store.observe(principal.id, { capabilities: frame.body })
      return
    case 'peers_have':
      if (!principal.evidenceOnly) deps.sendPeers.has(session, frame.body.revision)
      return
    case 'peers_applied':
      if (principal.evidenceOnly) return
      if (frame.body.applied) deps.sendPeers.applied(session, frame.body.revision)
      return deps.peersIntake.take(deps, principal, frame.body, `session-${session.number}`)
    case 'sighting':
      return deps.sightings.shown(session, frame.body.statement, frame.body.earlier)
    case 'unknown_type':
      return
  }
}

/** So that the agent sends only what has not been taken over an earlier channel. */
const tellTaken = async (deps: FrameDeps, session: Session): Promise<void> => {
  if (session.evidence === null) return
  const { instance } = session.evidence
  const number = await deps.reports.lastTaken(session.principal.id, instance)
  if (number !== null) session.send({ type: 'reported', body: { instance, number } })
}

const report = async (deps: FrameDeps, session: Session, body: ReportBody): Promise<void> => {
  const { principal, evidence } = session
  if (evidence !== null && evidence.instance !== body.instance) {
    return session.end('REQUEST_INVALID', 'the report is of another process than the channel')
  }
  const number = await takeReport(deps, principal, evidence, body, `session-${session.number}`)
  await deps.overlays.again(deps, principal, `session-${session.number}`)
  session.send({ type: 'reported', body: { instance: body.instance, number } })
}
