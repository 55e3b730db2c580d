// Questions between replicas, and what silence means. An answer is only ever given under a lease; who has none is gone,
// and only the database says who has one.

import type { Prepared } from '#platform/postgres.ts'
import type { Asked, ReplicaNumber } from '#plane/store/contract/replicas.ts'
import type { StoreCore } from '#plane/store/contract/store.ts'
import type { Lease } from './lease.ts'
import type { ReplicaMessages } from './replica-messages.ts'

export type Questions = {
  ask(replica: ReplicaNumber, topic: string, question: unknown, withinMs: number): Promise<Asked>
  onQuestion(topic: string, answer: Answer): void
}

type Answer = (question: unknown, from: ReplicaNumber) => Promise<unknown>

/** Questions that wait here for an answer, and those that others are being answered. */
const mostAtOnce = 2000

export const openQuestions = (
  { timers, random, log }: Pick<StoreCore, 'timers' | 'random' | 'log'>,
  lease: Pick<Lease, 'self' | 'confirmed'>,
  messages: Pick<ReplicaMessages, 'send' | 'onMessage'>,
): Questions => {
  const topics = new Map<string, Answer>()
  const waiting = new Map<string, (value: unknown) => void>()
  let answering = 0

  const answerOne = async ({ id, from, to, topic, question }: QuestionMessage): Promise<void> => {
    const answer = topics.get(topic)
    // Under another number, everything this replica was asked about is over.
    if (answer === undefined || lease.self() !== to || answering >= mostAtOnce) return
    answering++
    try {
      const value = (await answer(question, from)) ?? null
      // The asking replica may have taken over by now what was held here.
      if (lease.self() === to) await messages.send(from, textOf({ kind: 'answer', id, value }))
    } catch (error) {
      log.warn({ err: error, topic }, 'a question of another replica was not answered')
    } finally {
      answering--
    }
  }

  messages.onMessage((text) => {
    const message = messageOf(text)
    if (message === null) return
    if (message.kind === 'question') void answerOne(message)
    else waiting.get(message.id)?.(message.value)
  })

  /** Null: silence. */
  const askOther = async (
    from: ReplicaNumber,
    replica: ReplicaNumber,
    about: Pick<QuestionMessage, 'topic' | 'question'>,
    withinMs: number,
  ): Promise<{ readonly value: unknown } | null> => {
    const id = random.bytes(12).toString('hex')
    const sent = messages.send(replica, textOf({ kind: 'question', id, from, to: replica, ...about }))
    let cancel = (): void => {}
    try {
      return await new Promise((resolve) => {
        cancel = timers.after(withinMs, () => resolve(null))
        waiting.set(id, (value) => resolve({ value }))
        sent?.catch((error: unknown) => log.debug({ err: error }, 'a question was lost'))
      })
    } finally {
      cancel()
      waiting.delete(id)
    }
  }

  const isLeased = async (replica: ReplicaNumber): Promise<boolean> => {
    const { count } = await lease.confirmed((connection) => connection.run(leasedStatement, [replica]))
    return count > 0
  }

  return {
    async ask(replica, topic, question, withinMs) {
      const self = lease.self()
      if (self === null || waiting.size >= mostAtOnce) return { kind: 'no-answer' }
      const answered =
        replica === self
          ? { value: (await topics.get(topic)?.(question, self)) ?? null }
          : await askOther(self, replica, { topic, question }, withinMs)
      if (answered !== null) return { kind: 'answer', value: answered.value }
      try {
        return { kind: (await isLeased(replica)) ? 'no-answer' : 'gone' }
      } catch (error) {
        log.debug({ err: error, replica }, 'whether a silent replica has a lease could not be found out')
        return { kind: 'no-answer' }
      }
    },
    onQuestion: (topic, answer) => void topics.set(topic, answer),
  }
}

type QuestionMessage = {
  readonly kind: 'question'
  readonly id: string
  readonly from: ReplicaNumber
  readonly to: ReplicaNumber
  readonly topic: string
  readonly question: unknown
}
type Message = QuestionMessage | { readonly kind: 'answer'; readonly id: string; readonly value: unknown }

const textOf = (message: Message): string => JSON.stringify(message)

/** Null: it is none that this plane knows; a newer one may send others. */
const messageOf = (text: string): Message | null => {
  try {
    const message = JSON.parse(text) as Partial<QuestionMessage> | Message | null
    if (message === null || typeof message !== 'object' || typeof message.id !== 'string') return null
    if (message.kind === 'question')
      return typeof message.topic === 'string' && Number.isSafeInteger(message.from) ? (message as Message) : null
    return (message as Message).kind === 'answer' ? (message as Message) : null
  } catch {
    return null
  }
}

const leasedStatement: Prepared = {
  name: 'ask-leased',
  text: 'SELECT FROM replica WHERE number = $1 AND expires_at > clock_timestamp()',
}
