// The queue of tasks, in figures. Every replica shows the same.

import { Gauge, type Registry } from 'prom-client'
import type { Core } from '#plane/core/core.ts'

export const openTaskGauges = ({ store, clock }: Pick<Core, 'store' | 'clock'>, registers: Registry[]): void => {
  new Gauge({
    name: 'muster_tasks_waiting',
    help: 'Tasks that wait for their node',
    registers,
    async collect() {
      this.set(await store.countQueuedTasks())
    },
  })
  new Gauge({
    name: 'muster_task_queue_age_seconds',
    help: 'How long the task has waited that waits longest for its node; 0: none waits',
    registers,
    async collect() {
      const [oldest] = await store.list('task', {
        where: { state: 'queued' },
        order: 'sort_key',
        after: null,
        limit: 1,
      })
      this.set(oldest === undefined ? 0 : Math.max(0, (clock.nowMs() - oldest.value.createdAtMs) / 1000))
    },
  })
}
