// Which node takes tasks over which session, here: a channel whose agent has said so, or a long-poll that waits. It is served when it
// comes and whenever something is committed that gives it work.

import type { EntryType } from '#domain/core/journal-entry.ts'
import type { NodeId } from '#domain/core/node.ts'
import type { NodePrincipal } from '#domain/core/principal.ts'
import type { TaskId } from '#domain/tasks/task.ts'
import type { Core } from '#plane/core/core.ts'
import { dispatchedTo, dispatchNext, envelopeOf } from './dispatch.ts'
import type { TaskSigner } from './task-signers.ts'

/** What is known of a session; a `Session` is one. */
export type TaskTaker = { readonly principal: NodePrincipal; readonly alive: boolean }

/** Sends one envelope over the session. */
export type SendTask = (envelope: string, id: TaskId) => void

export type TaskDispatcher = {
  /**
   * The node takes tasks over this session from now on and has these already; of several sessions the last counts. What was
   * dispatched to its epoch, has no result and is not among these is sent again. Resolves when it was sent what there is; never rejects.
   */
  greeted(taker: TaskTaker, held: ReadonlySet<TaskId>, send: SendTask): Promise<void>
  /** The session has ended, or takes none for now. */
  left(taker: TaskTaker): void
}

/** Entries of a node behind which there may be something to send to it. */
const givesWork: ReadonlySet<EntryType> = new Set<EntryType>([
  'task.queued',
  // One fewer is under way.
  'task.completed',
  'task.failed',
  'task.refused',
  'task.unknown',
])
/** What stopped every dispatch is over. */
const letsGoOn: ReadonlySet<EntryType> = new Set<EntryType>(['issuance.resumed', 'store.confirmed'])

const againMs = 1000

type Served = {
  readonly taker: TaskTaker
  readonly send: SendTask
  /** What the node has, as it said; null: that was looked at. */
  held: ReadonlySet<TaskId> | null
}

export const openTaskDispatcher = (core: Core, domainName: string, signer: TaskSigner): TaskDispatcher => {
  const { store, feed, timers, log } = core
  /** Of a node, the last one counts. */
  const takers = new Map<NodeId, readonly Served[]>()
  /** `again`: something came while it was served. */
  const serving = new Map<NodeId, { again: boolean; over: Promise<void> }>()

  const takerOf = (node: NodeId): Served | undefined => takers.get(node)?.at(-1)
  const isServed = (node: NodeId, served: Served): boolean => takerOf(node) === served && served.taker.alive
  const without = (taker: TaskTaker): readonly Served[] =>
    (takers.get(taker.principal.id) ?? []).filter((served) => served.taker !== taker)

  const resend = async (node: NodeId, served: Served): Promise<void> => {
    const { held, taker } = served
    if (held === null || signer.key() === null) return
    served.held = null
    for (const task of await dispatchedTo(store, taker.principal)) {
      if (!held.has(task.id) && isServed(node, served)) served.send(envelopeOf(signer, domainName, task), task.id)
    }
  }

  const serveOnce = async (node: NodeId): Promise<void> => {
    const served = takerOf(node)
    if (served === undefined) return
    await resend(node, served)
    while (isServed(node, served)) {
      const task = await dispatchNext(core, signer, served.taker.principal)
      if (task === 'busy') return void timers.after(againMs, () => void serve(node))
      if (task === null) return
      // Where it has ended meanwhile, the next session is sent it.
      if (isServed(node, served)) served.send(envelopeOf(signer, domainName, task), task.id)
    }
  }

  const serveAll = async (node: NodeId, run: { again: boolean }): Promise<void> => {
    try {
      do {
        run.again = false
        await serveOnce(node)
      } while (run.again)
    } catch (error) {
      log.warn({ err: error, node }, 'the tasks of a node could not be dispatched')
      timers.after(againMs, () => void serve(node))
    }
    // In the turn of the last look: what comes from now on begins anew.
    serving.delete(node)
  }

  const serve = (node: NodeId): Promise<void> => {
    if (!takers.has(node)) return Promise.resolve()
    const running = serving.get(node)
    if (running !== undefined) {
      running.again = true
      return running.over
    }
    const run = { again: false, over: Promise.resolve() }
    serving.set(node, run)
    run.over = serveAll(node, run)
    return run.over
  }

  feed.subscribe('tasks', ({ entries }) => {
    for (const { entry } of entries) {
      if (letsGoOn.has(entry.type)) for (const node of takers.keys()) void serve(node)
      else if (entry.node !== null && givesWork.has(entry.type)) void serve(entry.node)
    }
  })

  return {
    greeted(taker, held, send) {
      takers.set(taker.principal.id, [...without(taker), { taker, held, send }])
      return serve(taker.principal.id)
    },
    left(taker) {
      const rest = without(taker)
      if (rest.length > 0) takers.set(taker.principal.id, rest)
      else takers.delete(taker.principal.id)
    },
  }
}
