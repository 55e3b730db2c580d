// The agent's side of the helper's socket. A host without a helper has none that answers: it then lacks what only the helper can do,
// and says so.

import * as path from 'node:path'
import { errno } from '#platform/files.ts'
import { connectForLines, type LineConnection } from '#platform/line-server.ts'
import { pathExists } from '#platform/paths.ts'
import type { Timers } from '#platform/timers.ts'
import { matchesSchema } from '#platform/json-schema.ts'
import { longestAnswer, Reply, verbs, type AnswerOf, type HelperCode, type RequestOf, type Verb } from './verbs.ts'

/** What the helper refused, or that it is not there. The message is for people, and says what to do. */
export class HelperRefusal extends Error {
  /**
   * `NO_HELPER`: none answers. `SOCKET_UNSAFE`: another user could have put that socket there. A newer helper may have codes that
   * are not known here.
   */
  readonly code: HelperCode | 'NO_HELPER' | 'SOCKET_UNSAFE' | (string & {})

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

export type HelperClient = {
  /** Throws `HelperRefusal`. Connects when it has to; a connection that has ended is made anew by the next call. */
  ask<V extends Verb>(verb: V, body: RequestOf<V>): Promise<AnswerOf<V>>
  close(): void
}

type Waiting = { done(answer: unknown): void; failed(refusal: HelperRefusal): void }

/** Longer than agent.toml lets anything take, and the minute that it may have to wait for its turn. */
const answerWithinMs = 700_000

/**
 * `faultOf`: why the one at the other end of a socket may be someone else than the helper; null: it is not. Private keys are sent to
 * it, and Node cannot ask the kernel who it is, so its path has to tell.
 */
export const openHelperClient = (
  timers: Timers,
  socket: string,
  faultOf: (socket: string) => string | null,
): HelperClient => {
  const waiting = new Map<number, Waiting>()
  let connection: Promise<LineConnection> | null = null
  let lastId = 0

  const receive = (line: string): void => {
    const reply = replyIn(line)
    const asked = reply === null || reply.id === null ? undefined : waiting.get(reply.id)
    if (reply === null || asked === undefined) {
      // What is said without a request to it is why the connection ends.
      const { code, message } =
        reply !== null && 'refused' in reply
          ? reply.refused
          : { code: 'BAD_ANSWER', message: `The helper at ${socket} answered what is no answer` }
      return failAll(new HelperRefusal(code, message))
    }
    if ('refused' in reply) asked.failed(new HelperRefusal(reply.refused.code, reply.refused.message))
    else asked.done(reply.answer)
  }
  const failAll = (refusal: HelperRefusal): void => {
    const ended = connection
    connection = null
    for (const asked of waiting.values()) asked.failed(refusal)
    void ended?.then(
      (open) => open.close(),
      () => {},
    )
  }
  const connected = (): Promise<LineConnection> => {
    if (connection !== null) return connection
    const fault = pathExists(socket) ? faultOf(path.resolve(socket)) : null
    if (fault !== null)
      return Promise.reject(new HelperRefusal('SOCKET_UNSAFE', `Nothing is sent to ${socket}: ${fault}`))
    const opening = connectForLines(socket, longestAnswer, receive).then(
      (open) => {
        void open.closed.then((why) => {
          if (connection === opening) failAll(new HelperRefusal('NO_HELPER', `The helper at ${socket} is gone: ${why}`))
        })
        return open
      },
      (error: unknown) => {
        if (connection === opening) connection = null
        throw noHelper(socket, error)
      },
    )
    connection = opening
    return opening
  }

  return {
    ask: async <V extends Verb>(verb: V, body: RequestOf<V>): Promise<AnswerOf<V>> => {
      const open = await connected()
      const id = ++lastId
      const answer = await new Promise<unknown>((resolve, reject) => {
        const cancel = timers.after(answerWithinMs, () =>
          failAll(new HelperRefusal('NO_HELPER', `The helper at ${socket} does not answer`)),
        )
        const over = (): void => {
          cancel()
          waiting.delete(id)
        }
        waiting.set(id, {
          done: (value) => {
            over()
            resolve(value)
          },
          failed: (refusal) => {
            over()
            reject(refusal)
          },
        })
        open.send(JSON.stringify({ id, verb, body }))
      })
      if (matchesSchema(verbs[verb].answer, answer)) return answer as AnswerOf<V>
      throw new HelperRefusal('BAD_ANSWER', `The helper at ${socket} answered what is no answer to ${verb}`)
    },
    close: () => failAll(new HelperRefusal('NO_HELPER', 'The agent has ended')),
  }
}

const replyIn = (line: string): ReplyValue | null => {
  try {
    const reply: unknown = JSON.parse(line)
    return matchesSchema(Reply, reply) ? reply : null
  } catch {
    return null
  }
}

type ReplyValue =
  | { readonly id: number; readonly answer: unknown }
  | { readonly id: number | null; readonly refused: { readonly code: string; readonly message: string } }

const noHelper = (socket: string, error: unknown): HelperRefusal => {
  const code = errno(error)
  const why =
    code === 'ENOENT' || code === 'ECONNREFUSED'
      ? `No helper answers at ${socket}; start it: systemctl start muster-agent-helper.socket, or muster agent helper`
      : `The helper's socket ${socket} cannot be opened: ${code ?? String(error)}`
  return new HelperRefusal('NO_HELPER', why)
}
