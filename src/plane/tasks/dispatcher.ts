// Which node takes tasks over which session, here: a channel whose agent has said so, or a long-poll that waits. It is served when it
// comes and whenever something is committed that gives it work. What was dispatched to the node, by whichever replica, and was not sent
// over its session is sent again: after a failure, after a dispatch that did not end in this session, and once a minute.

import type { EntryType } from '#domain/core/journal-entry.ts'
import type { NodeId } from '#domain/core/node.ts'
import type { NodePrincipal } from '#domain/core/principal.ts'
import { stoppedBy } from '#domain/tasks/dispatch-task.ts'
import { taskDue, type Task, type TaskId } from '#domain/tasks/task.ts'
import type { Core } from '#plane/core/core.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import type { UpkeepTask } from '#plane/core/upkeep.ts'
import { dispatchedTo, dispatchNext, envelopeOf, isSentTo } from './dispatch.ts'
import { pagesOf } from './task-pages.ts'
import type { TaskSigner } from './task-signers.ts'

/** What is known of a session; a `Session` is one. */
export type TaskTaker = {
  readonly principal: NodePrincipal
  readonly alive: boolean
  /** Not null: its node has a channel on another replica by now, and takes tasks there. */
  readonly drainedAtMs: number | null
}

/** Sends one envelope over the session. */
export type SendTask = (envelope: string) => void

export type TaskDispatcher = {
  /**
   * The node takes tasks over this session from now on and has these already; of several sessions the last counts. What was
   * dispatched to its epoch, has no result and is not among these is sent again, over the same session not within a minute. Resolves
   * when it was sent what there is; never rejects.
   */
  greeted(taker: TaskTaker, held: ReadonlySet<TaskId>, send: SendTask): Promise<void>
  /** The session has ended, or takes none for now. */
  left(taker: TaskTaker): void
  /** Finds what was dispatched to a node of this replica and not sent, where nothing said so. */
  readonly upkeep: UpkeepTask
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

const retryAfterMs = 1000
/** It may still be on its way; and a node that asks again and again must not have its tasks signed each time. */
const sentAgainAfterMs = 60_000
const lookEveryMs = 60_000

type Served = {
  readonly taker: TaskTaker
  readonly send: SendTask
  /** What the node has, as it said when it came. */
  readonly held: ReadonlySet<TaskId>
  /** When each was sent over this session, monotonic. */
  readonly sent: Map<TaskId, number>
  /** Of these: sent before the node said what it has, and it did not name them. */
  readonly unheld: Set<TaskId>
  /** Dispatched by a commit that was published, and not sent yet. */
  readonly awaited: Set<TaskId>
  /** What was dispatched to the node has to be compared with what it has and was sent. */
  isLookDue: boolean
}

export const openTaskDispatcher = (core: Core, domainName: string, signer: TaskSigner): TaskDispatcher => {
  const { store, feed, clock, timers, log } = core
  /** Of a node, the last one counts. */
  const takers = new Map<NodeId, readonly Served[]>()
  /** A long-poll leaves and comes again with each of its calls. */
  const sentOver = new WeakMap<TaskTaker, Map<TaskId, number>>()
  /** `again`: something came while it was served. */
  const serving = new Map<NodeId, { again: boolean; over: Promise<void> }>()
  const retrying = new Set<NodeId>()

  const takerOf = (node: NodeId): Served | undefined =>
    takers.get(node)?.findLast(({ taker }) => taker.alive && taker.drainedAtMs === null)
  const isServed = (node: NodeId, served: Served): boolean => takerOf(node) === served
  const without = (taker: TaskTaker): readonly Served[] =>
    (takers.get(taker.principal.id) ?? []).filter((served) => served.taker !== taker)

  const lacks = ({ held, sent, unheld }: Served, id: TaskId): boolean => {
    if (held.has(id)) return false
    const sentAtMs = sent.get(id)
    if (sentAtMs === undefined) return true
    return unheld.has(id) && clock.monotonicMs() - sentAtMs >= sentAgainAfterMs
  }

  /** Where the session has ended or is drained meanwhile, the one that took its place looks. */
  const sendOver = (node: NodeId, served: Served, { id }: Task, envelope: string): void => {
    if (!isServed(node, served)) return
    served.send(envelope)
    served.sent.set(id, clock.monotonicMs())
    served.unheld.delete(id)
    served.awaited.delete(id)
  }

  const sendMissing = async (node: NodeId, served: Served): Promise<'sent' | 'busy'> => {
    if (!served.isLookDue && served.awaited.size === 0) return 'sent'
    if (signer.isResting()) return 'busy'
    // Before the look: what comes during it is looked at again.
    served.isLookDue = false
    served.awaited.clear()
    const missing = (await dispatchedTo(store, served.taker.principal)).filter(({ id }) => lacks(served, id))
    if (missing.length === 0) return 'sent'
    const isStopped = stoppedBy((await domainSettingsRow(store)).value) !== null
    const isReady = !isStopped && (await signer.confirmed()) !== null
    if (!isReady) {
      served.isLookDue = true
      return isStopped ? 'sent' : 'busy'
    }
    for (const task of missing) {
      if (!isServed(node, served)) return 'sent'
      const envelope = await envelopeOf(signer, domainName, task)
      if (envelope === null) {
        served.isLookDue = true
        return 'busy'
      }
      sendOver(node, served, task, envelope)
    }
    return 'sent'
  }

  const serveOnce = async (node: NodeId): Promise<void> => {
    const served = takerOf(node)
    if (served === undefined) return
    if ((await sendMissing(node, served)) === 'busy') return serveLater(node)
    while (isServed(node, served)) {
      const next = await dispatchNext(core, signer, served.taker.principal)
      if (next === 'busy') return serveLater(node)
      if (next === null) return
      sendOver(node, served, next.task, next.envelope)
    }
  }

  const serveAll = async (node: NodeId, run: { again: boolean }): Promise<void> => {
    try {
      do {
        run.again = false
        await serveOnce(node)
      } while (run.again || (takerOf(node)?.awaited.size ?? 0) > 0)
    } catch (error) {
      log.warn({ err: error, node }, 'the tasks of a node could not be dispatched')
      // What failed may have been committed all the same.
      for (const served of takers.get(node) ?? []) served.isLookDue = true
      serveLater(node)
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

  /** Once, however many ask for it. */
  const serveLater = (node: NodeId): void => {
    if (retrying.has(node)) return
    retrying.add(node)
    timers.after(retryAfterMs, () => {
      retrying.delete(node)
      void serve(node)
    })
  }

  /** By this replica, or by another one over a session that may be dead: its node may be here by now. */
  const wasDispatched = (node: NodeId, id: TaskId): void => {
    const served = takerOf(node)
    if (served === undefined || served.sent.has(id) || served.held.has(id)) return
    served.awaited.add(id)
    // One that is under way sends its own, and looks at its end for what is left.
    if (!serving.has(node)) void serve(node)
  }

  feed.subscribe('tasks', ({ entries }) => {
    for (const { entry } of entries) {
      if (letsGoOn.has(entry.type)) for (const node of takers.keys()) void serve(node)
      else if (entry.node === null) continue
      else if (givesWork.has(entry.type)) void serve(entry.node)
      else if (entry.type === 'task.dispatched') wasDispatched(entry.node, String(entry.body['task']))
    }
  })

  const lookAtAll = async (): Promise<void> => {
    const sinceMs = clock.monotonicMs()
    const open = new Set<TaskId>()
    const due = new Set<NodeId>()
    for await (const tasks of pagesOf(core, { where: { state: 'dispatched' }, order: 'due' }, taskDue)) {
      for (const task of tasks) {
        const served = takerOf(task.node)
        if (served === undefined) continue
        open.add(task.id)
        if (!isSentTo(task, served.taker.principal) || !lacks(served, task.id)) continue
        served.isLookDue = true
        due.add(task.node)
      }
    }
    for (const { sent } of [...takers.values()].flat())
      for (const [id, sentAtMs] of sent) if (sentAtMs < sinceMs && !open.has(id)) sent.delete(id)
    for (const node of due) void serve(node)
  }

  return {
    greeted(taker, held, send) {
      const { id } = taker.principal
      const sent = sentOver.get(taker) ?? new Map<TaskId, number>()
      sentOver.set(taker, sent)
      const unheld = new Set(sent.keys().filter((task) => !held.has(task)))
      const served = { taker, send, held, sent, unheld, awaited: new Set<TaskId>(), isLookDue: true }
      takers.set(id, [...without(taker), served])
      return serve(id)
    },
    left(taker) {
      const { id } = taker.principal
      const isNewest = takers.get(id)?.at(-1)?.taker === taker
      const rest = without(taker)
      if (rest.length > 0) takers.set(id, rest)
      else takers.delete(id)
      const next = isNewest ? takerOf(id) : undefined
      if (next === undefined) return
      // What was sent over the other one may have been lost with it.
      next.isLookDue = true
      void serve(id)
    },
    upkeep: { name: 'task delivery', where: 'each', everyMs: lookEveryMs, run: lookAtAll },
  }
}
