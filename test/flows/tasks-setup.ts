// A plane with nodes that take tasks, as tests of tasks and rollouts use it.

import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { slotOf } from '#domain/core/certificate.ts'
import { entry, readOf } from '#domain/core/change.ts'
import type { Node } from '#domain/core/node.ts'
import type { NodePrincipal } from '#domain/core/principal.ts'
import type { Task } from '#domain/tasks/task.ts'
import { dispatchNext } from '#plane/tasks/dispatch.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { openTaskSweep } from '#plane/tasks/sweep-tasks.ts'
import { takeResult } from '#plane/tasks/take-result.ts'
import { silentLog } from '#platform/log.ts'
import type { TaskResultRequest } from '#wire/tasks/task-node-api.ts'
import { eventually } from '../process/eventually.ts'
import type { Json } from '../process/operator-call.ts'
import { putNode, someCertificate } from '../store/harness.ts'
import { operator, startMs } from './authority-setup.ts'
import { setUpOperatorServer, type OperatorSetup } from './operator-setup.ts'

const hour = 3_600_000

const certificateOf = (id: string) =>
  someCertificate(`c-${id}`, { spki: `key-of-${id}`, issuedAtMs: startMs, notAfterMs: startMs + 100 * hour })

export const principalOf = (id: string, epoch = 1): NodePrincipal => ({
  ...{ kind: 'node', id, epoch, notAfterMs: startMs + 100 * hour, evidenceOnly: false, source: '192.0.2.1' },
  credential: { by: 'certificate', issuer: 'ca', serial: `c-${id}`, spki: `key-of-${id}` },
})

export const completed: TaskResultRequest = {
  ...{ state: 'completed', code: null, exit_code: 0, detail: null, started_at: null, evidence: null },
  output: { head: 'done\n', tail: '', bytes: 5 },
}

/** A store of which the first call that `breaks` names fails, before or after it has done its work. */
export const storeThatFails = (
  store: Store,
  breaks: {
    method: 'get' | 'list' | 'commit'
    when: 'before' | 'after'
    on: (first: unknown, second: unknown) => boolean
  },
): Store => {
  let failed = false
  return new Proxy(store, {
    get(from, name) {
      const found: unknown = Reflect.get(from, name)
      if (typeof found !== 'function') return found
      return async (...args: unknown[]) => {
        const fails = !failed && name === breaks.method && breaks.on(args[0], args[1])
        if (fails) failed = true
        if (fails && breaks.when === 'before') throw new Error('connection lost')
        const answer: unknown = await Reflect.apply(found, from, args)
        if (fails) throw new Error('connection lost')
        return answer
      }
    },
  })
}

/** Nodes in vCluster `training`, which allows `service`. */
export const setUpTasks = async (t: TestContext, ...ids: string[]) => {
  const plane: OperatorSetup = await setUpOperatorServer(t)
  const { store, feed, clock, random, timers } = plane
  const core = { store, feed, clock, random, timers, log: silentLog }
  const ask = async (method: string, path: string, body?: object): Promise<Json> => {
    const reply = await plane.call('platform-admin', method, path, body)
    assert.ok(reply.status < 300, `${method} ${path}: ${JSON.stringify(reply.body)}`)
    return reply.body
  }
  await ask('POST', '/v1/vclusters', { name: 'training', set: { 'tasks.types': ['service'] } })
  for (const id of ids) {
    const slots = { current: slotOf(certificateOf(id)), pending: null, retired: null }
    const active: Partial<Node> = { membership: { kind: 'active', sinceMs: startMs, slots }, epoch: 1 }
    await store.commit({
      reads: [readOf('node', id, null)],
      writes: [putNode(id, { ...active, assignment: 'training', profile: 'gpu-cloud' })],
      entries: [entry(operator, startMs, 'node.confirmed', { node: id, epoch: 1 })],
    })
  }
  await eventually('this replica to lead', () => store.replicas.leadership() !== null)
  const sweep = openTaskSweep(core)
  const parameters = { name: 'dcgm', action: 'restart' }
  return {
    ...plane,
    core,
    ask,
    sweep: () => sweep.run(store),
    queue: (node: string, more: object = {}): Promise<Json> =>
      ask('POST', '/v1/tasks', { node, type: 'service', parameters, ...more }),
    show: (id: string): Promise<Json> => ask('GET', `/v1/tasks/${id}`),
    dispatch: async (id: string, principal = principalOf(id)): Promise<Task | null> => {
      const found = await dispatchNext(core, plane.taskSigners, principal)
      assert(found !== 'busy')
      return found === null ? null : found.task
    },
    answer: (task: string, principal: NodePrincipal, body = completed) =>
      takeResult(core, { principal, task, body, correlation: 'call' }),
    line: async (node: string) => (await store.get('task-line', node))?.value,
    /** Entries about tasks, oldest first. */
    story: async () => {
      const entries = await store.journal.read({ after: null, last: null, limit: 1000, node: null, type: null })
      return entries.map(({ entry: said }) => said).filter(({ type }) => type.startsWith('task.'))
    },
  }
}
