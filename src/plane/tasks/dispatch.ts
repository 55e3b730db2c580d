// Hands queued tasks to the node that they are for. An envelope is signed, the dispatch is committed, and the envelope leaves: a task whose signer is
// away stays queued, and a plane that dies before it was sent loses nothing, because what is dispatched and has no result is sent again to
// the next session of the same epoch.

import { actorOf, type NodePrincipal } from '#domain/core/principal.ts'
import type { Row } from '#domain/core/change.ts'
import { decideDispatch, lanesInTurn } from '#domain/tasks/dispatch-task.ts'
import type { Lane, Task } from '#domain/tasks/task.ts'
import { commitOnce, retryLostRaces } from '#plane/core/commit-decision.ts'
import type { FlowCore } from '#plane/core/core.ts'
import { isKeyUnavailable } from '#plane/keys/key-unavailable.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { queuerOnRecord } from './queuers.ts'
import type { TaskSigner } from './task-signers.ts'

/** Each is a race that was lost to progress, or a task that was found to have ended. */
const tries = 64

export type Dispatched = { readonly task: Task; readonly envelope: string }

/** The next task of the caller's node, dispatched to it; null: there is none now. `busy`: there may be. */
export const dispatchNext = (
  core: FlowCore,
  signer: TaskSigner,
  principal: NodePrincipal,
): Promise<Dispatched | null | 'busy'> => {
  const { store, clock } = core
  const by = { actor: actorOf(principal), source: principal.source, correlation: null }
  if (signer.key() === null || signer.isResting()) return Promise.resolve('busy')
  return retryLostRaces({ tries, onBusy: () => 'busy' as const }, async () => {
    // Before the tasks: what is queued meanwhile makes the commit lose.
    const line = await store.get('task-line', principal.id)
    const task = await firstOf(store, principal.id, lanesInTurn(line))
    const node = task === null ? null : await store.get('node', principal.id)
    if (task === null || node === null) return null
    const signers = await signer.confirmed()
    if (signers === null) return 'busy'
    const { assignment } = node.value
    const domain = await domainSettingsRow(store)
    const verdict = decideDispatch({
      ...{ task, line, node, principal, by, nowMs: clock.nowMs() },
      vcluster: assignment === null ? null : await store.get('vcluster', assignment),
      domain,
      queuer: await queuerOnRecord(core, task.value.queuedBy),
      signers,
    })
    if (verdict.kind === 'waits') return null
    const isDispatched = verdict.task.state.kind === 'dispatched'
    const envelope = isDispatched ? await envelopeOf(signer, domain.value.name, verdict.task) : null
    if (isDispatched && envelope === null) return 'busy'
    if ((await commitOnce(core, verdict.change)) === 'lost-race') return 'lost-race'
    return envelope === null ? 'decide-again' : { task: verdict.task, envelope }
  })
}

/** The oldest that waits in the first of these lanes that has one. */
const firstOf = async (
  store: Pick<Store, 'list'>,
  node: NodePrincipal['id'],
  lanes: readonly Lane[],
): Promise<Row<Task> | null> => {
  for (const lane of lanes) {
    const [first] = await store.list('task', { where: { node, lane }, order: 'sort_key', after: null, limit: 1 })
    if (first !== undefined) return first
  }
  return null
}

/** What this epoch was sent and has not answered yet, oldest first. */
export const dispatchedTo = async (
  store: Pick<Store, 'list'>,
  to: Pick<NodePrincipal, 'id' | 'epoch'>,
): Promise<readonly Task[]> => {
  const where = { node: to.id, state: 'dispatched' }
  const rows = await store.list('task', { where, order: 'sort_key', after: null, limit: mostRead })
  return rows.map(({ value }) => value).filter((task) => isSentTo(task, to))
}

/** It is to be sent to this epoch, once more where it was sent before. */
export const isSentTo = ({ node, state, forged }: Task, { id, epoch }: Pick<NodePrincipal, 'id' | 'epoch'>): boolean =>
  node === id && !forged && state.kind === 'dispatched' && state.epoch === epoch

/** More than one epoch can have open. */
const mostRead = 64

/** Null: not now. The key of the signer is elsewhere and cannot be used, or another signer has taken its place while it was waited for. */
export const envelopeOf = async (
  signer: Pick<TaskSigner, 'key' | 'sign'>,
  domain: string,
  task: Task,
): Promise<string | null> => {
  const { id, node, type, parameters, expiresAtMs, state } = task
  if (state.kind !== 'dispatched') throw new Error(`${id} is signed without being dispatched`)
  const by = signer.key()
  try {
    const envelope = await signer.sign({
      ...{ domain, node, epoch: state.epoch, id, type, parameters: { ...parameters } },
      ...{ issued_ms: state.issuedAtMs, expires_ms: expiresAtMs, counter: state.counter },
    })
    return signer.key() === by ? envelope : null
  } catch (error) {
    // There is an alert for it.
    if (isKeyUnavailable(error)) return null
    throw error
  }
}
