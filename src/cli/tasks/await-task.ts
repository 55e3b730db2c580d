// Waits until a task has ended. Its result decides how the command ends, so that a script can go on from there.

import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { Failure } from '#cli/kit/failure.ts'
import { waitForPlane, type OperatorClient } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { printable } from '#cli/kit/printable.ts'
import { mostTaskWaitMs, taskApi, type TaskView } from '#wire/tasks/task-api.ts'
import { showTask } from './task-lines.ts'

/** `withinMs`: null waits for as long as it takes; a task lives 24 hours at most. */
export const awaitTask = async (
  cli: Cli,
  options: GlobalOptions,
  plane: OperatorClient,
  task: TaskView,
  withinMs: number | null,
): Promise<void> => {
  const print = printer(cli, options)
  const startedMs = cli.clock.monotonicMs()
  const leftMs = (): number => (withinMs === null ? mostTaskWaitMs : withinMs - (cli.clock.monotonicMs() - startedMs))
  let latest = task
  let said: string | undefined
  const sayWhy = (): void => {
    if (latest.waits_because !== said && latest.waits_because !== undefined && !print.structured)
      print.note(`it waits: ${latest.waits_because}`)
    said = latest.waits_because
  }
  while (latest.ended_at === null && leftMs() > 0) {
    sayWhy()
    if (cli.err.isTerminal) cli.err.write(`\r\x1b[K${printable(`${latest.node}: ${latest.state}`)}`)
    const query = { wait_ms: Math.max(1, Math.min(mostTaskWaitMs, Math.floor(leftMs()))) }
    latest = await waitForPlane(cli, print.note, () => plane.ask(taskApi.show, { params: { id: task.id }, query }))
  }
  if (cli.err.isTerminal) cli.err.write('\r\x1b[K')
  if (latest.ended_at === null)
    throw new Failure({
      exit: exitCodes.tryLater,
      code: 'TASK_NOT_ENDED',
      sentence: `The task is still ${latest.state}.`,
      next: `Wait on: muster task wait ${latest.id}`,
    })
  showTask(cli, print, latest)
  if (latest.state !== 'completed') cli.exit.finish(exitCodes.taskFailed)
}
