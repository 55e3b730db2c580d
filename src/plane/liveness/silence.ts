// How long a node without a channel has been silent. Each replica knows only its own channels, so all of them are asked; one that
// does not answer may have had the last one.

import type { NodeId } from '#domain/core/node.ts'
import type { Clock } from '#platform/clock.ts'
import type { ReplicaNumber, Replicas } from '#plane/store/contract/replicas.ts'
import type { Presence } from './presence.ts'
import {
  answerReplicas,
  askReplica,
  lastClosedQuestion,
  lastHereQuestion,
  lookUpWithinMs,
} from '#plane/cluster/replica-questions.ts'
import type { SessionRegistry } from '#plane/sessions/session-registry.ts'
import type { Holding } from '#plane/sessions/holding.ts'

export type Silence = {
  /** Never longer than this replica has been looking. `unknown`: a replica with a lease does not answer. */
  of(node: NodeId): Promise<number | 'unknown'>
  /**
   * The node closed its last channel itself, on any replica. False where that is unknown: the channel broke or was cut, the plane
   * has restarted since, or a replica does not answer.
   */
  closedByHolder(node: NodeId): Promise<boolean>
  /** Who of these was last on another replica, and how long ago; a node that is on one now was so just now. */
  lastElsewhere(nodes: readonly NodeId[]): Promise<ReadonlyMap<NodeId, number> | 'unknown'>
}

export type SilenceParts = {
  readonly sessions: Pick<SessionRegistry, 'of'>
  readonly presence: Pick<Presence, 'silentMs' | 'leftMs' | 'closedByHolder'>
  readonly replicas: Replicas
  readonly holding: Pick<Holding, 'holdAgain'>
}

type LastClosed = { readonly leftMs: number; readonly closedByHolder: boolean }

/** A question is carried by the store, which takes short ones. */
const nodesAtOnce = 50

export const openSilence = (clock: Clock, { sessions, presence, replicas, holding }: SilenceParts): Silence => {
  let lookingSinceMs = clock.monotonicMs()
  replicas.onStanding(({ kind }) => {
    if (kind === 'serving') lookingSinceMs = clock.monotonicMs()
  })

  const lastHere = (node: NodeId): 'here' | number | null => {
    if (sessions.of(node).length === 0) return presence.leftMs(node)
    // The asking replica has not found a hold in the store.
    holding.holdAgain(node)
    return 'here'
  }
  answerReplicas(replicas, lastHereQuestion, async ({ nodes }) => nodes.map(lastHere))

  const lastClosed = (node: NodeId): LastClosed | null => {
    const leftMs = presence.leftMs(node)
    return leftMs === null ? null : { leftMs, closedByHolder: presence.closedByHolder(node) }
  }
  answerReplicas(replicas, lastClosedQuestion, async ({ node }) => lastClosed(node))

  const closedByHolder = async (node: NodeId): Promise<boolean> => {
    const others = (await replicas.leased()).filter(({ number }) => number !== replicas.self)
    const asked = await Promise.all(
      others.map(({ number }) => askReplica(replicas, number, lastClosedQuestion, { node }, lookUpWithinMs)),
    )
    if (asked.some(({ kind }) => kind === 'no-answer')) return false
    const answers = [lastClosed(node), ...asked.map((answer) => (answer.kind === 'answer' ? answer.value : null))]
    const [last] = answers.filter((one) => one !== null).sort((one, other) => one.leftMs - other.leftMs)
    return last?.closedByHolder === true
  }

  const askOne = async (
    replica: ReplicaNumber,
    nodes: readonly NodeId[],
    shortest: Map<NodeId, number>,
  ): Promise<'known' | 'unknown'> => {
    const asked = await askReplica(replicas, replica, lastHereQuestion, { nodes: [...nodes] }, lookUpWithinMs)
    if (asked.kind === 'gone') return 'known'
    if (asked.kind !== 'answer' || asked.value.length !== nodes.length) return 'unknown'
    nodes.forEach((node, at) => {
      const said = asked.value[at] ?? null
      if (said === null) return
      shortest.set(node, Math.min(said === 'here' ? 0 : said, shortest.get(node) ?? Infinity))
    })
    return 'known'
  }

  const lastElsewhere: Silence['lastElsewhere'] = async (nodes) => {
    const others = (await replicas.leased()).filter(({ number }) => number !== replicas.self)
    const shortest = new Map<NodeId, number>()
    for (let from = 0; from < nodes.length && others.length > 0; from += nodesAtOnce) {
      const some = nodes.slice(from, from + nodesAtOnce)
      const answers = await Promise.all(others.map(({ number }) => askOne(number, some, shortest)))
      if (answers.includes('unknown')) return 'unknown'
    }
    return shortest
  }

  return {
    closedByHolder,
    lastElsewhere,
    async of(node) {
      const elsewhere = await lastElsewhere([node])
      if (elsewhere === 'unknown') return elsewhere
      const here = presence.silentMs(node) ?? Infinity
      return Math.min(clock.monotonicMs() - lookingSinceMs, here, elsewhere.get(node) ?? Infinity)
    },
  }
}
