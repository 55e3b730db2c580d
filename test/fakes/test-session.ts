// Sessions without a network: a socket that remembers what was asked of it, and does nothing by itself.

import type { NodePrincipal } from '#domain/core/principal.ts'
import type { SessionRegistry } from '#plane/sessions/session-registry.ts'
import type { Session, SessionSocket } from '#plane/sessions/session.ts'
import { openJournalWitness } from '#plane/store/journal/journal-witness.ts'
import { openSoleReplica } from '#plane/store/sqlite/sole-replica.ts'
import type { AgentEvidence } from '#wire/core/agent-evidence.ts'
import type { Json } from '../process/operator-call.ts'

export type TestSocket = SessionSocket & {
  bufferedAmount: number
  /** Frames, `ping` and `pong:PAYLOAD`, oldest first. */
  readonly sent: Json[]
  /** How often it was closed, with or without what was sent before. */
  readonly terminated: () => number
  readonly paused: () => boolean
}

export const testSocket = (): TestSocket => {
  const sent: Json[] = []
  let terminated = 0
  let paused = false
  return {
    bufferedAmount: 0,
    sent,
    terminated: () => terminated,
    paused: () => paused,
    send: (text: unknown) => void sent.push(JSON.parse(String(text))),
    ping: () => void sent.push('ping'),
    pong: (payload: unknown) => void sent.push(`pong:${String(payload)}`),
    pause: () => void (paused = true),
    resume: () => void (paused = false),
    terminate: () => void terminated++,
    cut: () => void terminated++,
  }
}

export const testPrincipal = (id: string, changes: Partial<NodePrincipal> = {}): NodePrincipal => ({
  kind: 'node',
  id,
  epoch: 1,
  credential: { by: 'certificate', issuer: 'issuer', serial: 'aa', spki: 'key-of-aa' },
  notAfterMs: 1_000_000_000,
  evidenceOnly: false,
  source: '192.0.2.1',
  ...changes,
})

export const openTestSession = (
  sessions: SessionRegistry,
  socket: SessionSocket,
  principal: NodePrincipal,
  evidence: AgentEvidence | null = null,
): Session => sessions.open(socket, principal, evidence, sessions.nextNumber())

/** The only one there is. */
export const oneReplica = (activeNodes: readonly string[] = []) =>
  openSoleReplica({ name: 'test', version: '0', startedAtMs: 0 }, openJournalWitness(), async () => activeNodes)
