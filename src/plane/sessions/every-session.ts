// The open channels of a node, on whichever replica they are.

import type { NodeId } from '#domain/core/node.ts'
import type { OpenSession } from '#plane/core/open-channels.ts'
import type { Replicas } from '#plane/store/contract/replicas.ts'
import type { Holding } from './holding.ts'
import { answerReplicas, askReplica, lookUpWithinMs, sessionsQuestion } from '#plane/cluster/replica-questions.ts'
import type { SessionRegistry } from './session-registry.ts'
import type { Session } from './session.ts'

export type EverySession = {
  of(node: NodeId): Promise<readonly OpenSession[]>
  isConnected(node: NodeId): Promise<boolean>
}

export type EverySessionParts = {
  readonly sessions: Pick<SessionRegistry, 'of'>
  readonly holding: Pick<Holding, 'elsewhere'>
  readonly replicas: Pick<Replicas, 'ask' | 'onQuestion'>
}

export const openEverySession = ({ sessions, holding, replicas }: EverySessionParts): EverySession => {
  answerReplicas(replicas, sessionsQuestion, async ({ node }) => sessions.of(node).map(describeSession))
  return {
    async of(node) {
      const here = sessions.of(node).map(describeSession)
      if (here.length > 0) return here
      const hold = await holding.elsewhere(node)
      if (hold === null) return []
      const asked = await askReplica(replicas, hold.replica, sessionsQuestion, { node }, lookUpWithinMs)
      if (asked.kind === 'answer') return asked.value
      return asked.kind === 'gone' ? [] : [{ number: hold.number, sinceMs: null, serial: null }]
    },
    isConnected: async (node) => sessions.of(node).length > 0 || (await holding.elsewhere(node)) !== null,
  }
}

export const describeSession = ({ number, openedAtMs: sinceMs, principal, verifiers }: Session) => ({
  number,
  sinceMs,
  serial: principal.credential.serial,
  takesTasks: verifiers !== null,
})
