// What replicas ask each other about the channels they hold. An answer that does not fit is none: a replica of another
// release may say things this one cannot use.

import { Type, type Static, type TSchema } from 'typebox'
import type { Asked, ReplicaNumber, Replicas } from '#plane/store/contract/replicas.ts'
import { AgentEvidence } from '#wire/core/agent-evidence.ts'
import { compiledCheck } from '#wire/core/compiled-check.ts'

const orNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])

const question = <Q extends TSchema, A extends TSchema>(topic: string, asks: Q, answers: A) => ({
  topic,
  asks: compiledCheck(asks),
  answers: compiledCheck(answers),
  types: { asks, answers },
})

type Question<Q extends TSchema, A extends TSchema> = ReturnType<typeof question<Q, A>>

const Node = Type.String()
const Instance = orNull(Type.String())

const Holder = Type.Object({ evidence: orNull(AgentEvidence), source: Type.String(), serial: Type.String() })

/** The process that answers on a channel of this node there, other than this one; null: none. */
export const otherHolderQuestion = question(
  'channel.other-holder',
  Type.Object({ node: Node, instance: Instance }),
  orNull(Holder),
)

/** That process takes the place of all others, which were silent: their channels there are ended. Answers how many. */
export const makeRoomQuestion = question(
  'channel.make-room',
  Type.Object({ node: Node, instance: Instance }),
  Type.Integer(),
)

/** The node has opened a newer channel elsewhere: those up to this number are drained. */
export const movedQuestion = question('channel.moved', Type.Object({ node: Node, upTo: Type.Integer() }), Type.Null())

/** The node has not moved after all: a replica that has its channel takes the hold again. */
export const stayedQuestion = question('channel.stayed', Type.Object({ node: Node }), Type.Null())

/** Are the channels of this node there alive? Pinged as the ruling says. */
export const probeQuestion = question(
  'channel.probe',
  // How long, in ms; a replica of 0.2.0 leaves it out, and answers only `silent`.
  Type.Object({ node: Node, enoughMs: Type.Optional(Type.Number()) }),
  Type.Union([Type.Literal('answered'), Type.Literal('silent'), Type.Number()]),
)

const OpenSession = Type.Object({
  number: Type.Integer(),
  sinceMs: Type.Number(),
  serial: Type.String(),
  /** Left out by replicas before 0.6. */
  takesTasks: Type.Optional(Type.Boolean()),
})

export const sessionsQuestion = question('channel.sessions', Type.Object({ node: Node }), Type.Array(OpenSession))

/** For each node: it has a channel there, or how long ago its last one ended, or null: it had none there of late. */
export const lastHereQuestion = question(
  'channel.last-here',
  Type.Object({ nodes: Type.Array(Node) }),
  Type.Array(Type.Union([Type.Literal('here'), Type.Number(), Type.Null()])),
)

/** How long ago the last channel of the node there ended, and whether the node closed it; null: it had none of late. */
export const lastClosedQuestion = question(
  'channel.last-closed',
  Type.Object({ node: Node }),
  orNull(Type.Object({ leftMs: Type.Number(), closedByHolder: Type.Boolean() })),
)

/** Whether this process is known there to have moved on to this certificate of its node; null: nothing is known. */
export const lastHolderQuestion = question(
  'channel.last-holder',
  Type.Object({ node: Node, instance: Type.String(), serial: Type.String() }),
  orNull(Type.Boolean()),
)

/** How many channels this withdrawal has cut there; null: no answer in time. */
export const withdrawnQuestion = question(
  'channel.withdrawn',
  Type.Object({ receipt: Type.String() }),
  orNull(Type.Integer()),
)

/** For each node: when it confirmed there that its peers are without this key; null: it has not. */
export const peersWithoutQuestion = question(
  'peers.without',
  Type.Object({ key: Type.String(), nodes: Type.Array(Node) }),
  Type.Array(orNull(Type.Number())),
)

/** The revision of the peers it last confirmed there. */
export const peersAppliedQuestion = question('peers.applied', Type.Object({ node: Node }), orNull(Type.String()))

/** As `Replicas.ask`, with an answer of the right shape. */
export const askReplica = async <Q extends TSchema, A extends TSchema>(
  replicas: Pick<Replicas, 'ask'>,
  to: ReplicaNumber,
  about: Question<Q, A>,
  asks: Static<Q>,
  withinMs: number,
): Promise<{ readonly kind: 'answer'; readonly value: Static<A> } | Exclude<Asked, { kind: 'answer' }>> => {
  const asked = await replicas.ask(to, about.topic, asks, withinMs)
  if (asked.kind !== 'answer') return asked
  const { value } = asked
  return about.answers.Check(value) ? { kind: 'answer', value } : { kind: 'no-answer' }
}

export const answerReplicas = <Q extends TSchema, A extends TSchema>(
  replicas: Pick<Replicas, 'onQuestion'>,
  about: Question<Q, A>,
  answer: (asks: Static<Q>) => Promise<Static<A>>,
): void =>
  replicas.onQuestion(about.topic, async (asks) => {
    if (!about.asks.Check(asks)) throw new Error(`a question about ${about.topic} does not fit its schema`)
    return answer(asks)
  })

/** A replica answers at once what it only has to look up. */
export const lookUpWithinMs = 2000
