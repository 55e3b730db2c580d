// Reads tasks in small pieces, with a turn of the event loop between them: a long queue holds up nothing else.

import type { Row } from '#domain/core/change.ts'
import type { Task } from '#domain/tasks/task.ts'
import type { Core } from '#plane/core/core.ts'
import type { ListQuery } from '#plane/store/contract/store.ts'
import { turn } from '#platform/timers.ts'

const pageSize = 100

/** Of each value of a column one task, by one lookup each, however many there are. */
export async function* firstOfEach(
  { store, timers }: Pick<Core, 'store' | 'timers'>,
  column: 'waits_for' | 'queuer',
  valueOf: (task: Task) => string,
): AsyncGenerator<Task, void, void> {
  for (let after: string | null = null; ;) {
    const [first]: readonly Row<Task>[] = await store.list('task', { order: column, after, limit: 1 })
    if (first === undefined) return
    yield first.value
    after = valueOf(first.value)
    await turn(timers)
  }
}

export async function* pagesOf(
  { store, timers }: Pick<Core, 'store' | 'timers'>,
  query: Pick<ListQuery, 'where' | 'order'>,
  placeOf: (task: Task) => string | null,
): AsyncGenerator<readonly Task[], void, void> {
  for (let after: string | null = null; ;) {
    const rows: readonly Row<Task>[] = await store.list('task', { ...query, after, limit: pageSize })
    const last = rows.at(-1)
    if (last === undefined) return
    yield rows.map(({ value }) => value)
    if (rows.length < pageSize) return
    after = placeOf(last.value)
    await turn(timers)
  }
}
