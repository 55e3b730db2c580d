// Reads tasks in small pieces, with a turn of the event loop between them: a long queue holds up nothing else.

import type { Task } from '#domain/tasks/task.ts'
import type { Core } from '#plane/core/core.ts'
import { pages } from '#plane/core/pages.ts'
import type { ListQuery } from '#plane/store/contract/store.ts'

type ReadingCore = Pick<Core, 'store' | 'timers'>

const pageSize = 100

/** Of each value of a column one task, by one lookup each, however many there are. */
export async function* firstOfEach(
  core: ReadingCore,
  column: 'waits_for' | 'queuer',
  valueOf: (task: Task) => string,
): AsyncGenerator<Task, void, void> {
  for await (const tasks of pagesOf(core, { order: column }, valueOf, 1)) yield* tasks
}

export async function* pagesOf(
  { store, timers }: ReadingCore,
  query: Pick<ListQuery, 'where' | 'order'>,
  placeOf: (task: Task) => string | null,
  limit = pageSize,
): AsyncGenerator<readonly Task[], void, void> {
  const rows = pages({
    limit,
    read: (after: string | null) => store.list('task', { ...query, after, limit }),
    placeOf: ({ value }) => placeOf(value),
    timers,
  })
  for await (const page of rows) yield page.map(({ value }) => value)
}
