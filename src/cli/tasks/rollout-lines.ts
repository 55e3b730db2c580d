// A rollout as a terminal shows it, and waiting for it.

import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { formatAgo, moment } from '#cli/kit/duration.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { Failure } from '#cli/kit/failure.ts'
import type { Column } from '#cli/kit/list.ts'
import { waitForPlane, type OperatorClient } from '#cli/kit/operator-client.ts'
import { printer, type Colour, type Print } from '#cli/kit/print.ts'
import { printable } from '#cli/kit/printable.ts'
import { renderFacts } from '#cli/kit/table.ts'
import { parseIsoTime } from '#platform/clock.ts'
import { rolloutApi, type RolloutView } from '#wire/tasks/rollout-api.ts'

const colours: Readonly<Record<RolloutView['state'], Colour>> = {
  running: 'plain',
  held: 'red',
  done: 'green',
  cancelled: 'yellow',
}

export const rolloutColumns = (nowMs: number): readonly Column<RolloutView>[] => [
  { name: 'rollout', cell: ({ id }) => id },
  { name: 'type', cell: ({ type }) => type },
  { name: 'state', cell: ({ state }) => ({ text: state, colour: colours[state] }) },
  { name: 'reached', cell: ({ reached, nodes }) => `${reached} of ${nodes}` },
  { name: 'completed', cell: ({ tasks }) => String(tasks['completed'] ?? 0) },
  { name: 'failures', cell: ({ failures, failure_limit: limit }) => `${failures} (limit ${limit})` },
  { name: 'by', cell: ({ by }) => by },
  {
    name: 'created',
    cell: ({ created_at: at }) => formatAgo(parseIsoTime(at) ?? nowMs, nowMs),
    value: ({ created_at: at }) => at,
  },
]

/** `4 completed, 1 failed`: what there is. */
const inShort = ({ tasks, refused }: RolloutView): string =>
  [...Object.entries(tasks), ['refused', refused] as const]
    .flatMap(([state, count]) => (count === 0 ? [] : [`${count} ${state}`]))
    .join(', ')

export const showRollout = (cli: Cli, print: Print, rollout: RolloutView): void => {
  const { id, type, state, why, reached, nodes } = rollout
  const nowMs = cli.clock.nowMs()
  print.answer(rollout, (paint) =>
    renderFacts([
      ['rollout', id],
      ['type', type],
      ['parameters', JSON.stringify(rollout.parameters)],
      ['state', `${paint(colours[state], state)}${why === null ? '' : `: ${printable(why)}`}`],
      ['reached', `${reached} of ${nodes} nodes, ${rollout.concurrency} at once`],
      ['tasks', inShort(rollout) || 'none yet'],
      ...(rollout.last_refused === null ? [] : [['refused last', rollout.last_refused] as const]),
      ['failures', `${rollout.failures}, and the rest is held at ${rollout.failure_limit}`],
      ['begun', `${moment(rollout.created_at, nowMs)} by ${rollout.by}`],
    ]),
  )
  for (const hint of hintsOf(rollout)) print.note(hint)
}

const hintsOf = ({ id, state, failures }: RolloutView): readonly string[] => [
  ...(failures > 0
    ? [`failed, unknown and expired tasks are among: muster task list --rollout ${id} --sort state`]
    : []),
  ...(state === 'held' ? [`to go on: muster rollout resume ${id}; to end it: muster rollout cancel ${id}`] : []),
]

/** The plane answers sooner where it goes on. */
const lookEveryMs = 2000

/** Until it is over or held. How it went decides how the command ends. */
export const awaitRollout = async (
  cli: Cli,
  options: GlobalOptions,
  plane: OperatorClient,
  { id, withinMs }: { readonly id: string; readonly withinMs: number | null },
): Promise<void> => {
  const print = printer(cli, options)
  const startedMs = cli.clock.monotonicMs()
  const leftMs = (): number => (withinMs === null ? lookEveryMs : withinMs - (cli.clock.monotonicMs() - startedMs))
  const look = (waitMs: number): Promise<RolloutView> =>
    waitForPlane(cli, print.note, () => plane.ask(rolloutApi.show, { params: { id }, query: { wait_ms: waitMs } }))
  let latest = await look(0)
  while (latest.state === 'running' && leftMs() > 0) {
    if (cli.err.isTerminal)
      cli.err.write(`\r\x1b[K${latest.reached} of ${latest.nodes} nodes: ${printable(inShort(latest))}`)
    latest = await look(Math.max(1, Math.min(lookEveryMs, Math.floor(leftMs()))))
  }
  if (cli.err.isTerminal) cli.err.write('\r\x1b[K')
  if (latest.state === 'running')
    throw new Failure({
      exit: exitCodes.tryLater,
      code: 'ROLLOUT_NOT_ENDED',
      sentence: `The rollout has reached ${latest.reached} of ${latest.nodes} nodes.`,
      next: `Wait on: muster rollout wait ${id}`,
    })
  showRollout(cli, print, latest)
  if (latest.state !== 'done' || latest.failures > 0) cli.exit.finish(exitCodes.taskFailed)
}
