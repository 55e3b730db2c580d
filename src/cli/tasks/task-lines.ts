// A task as a terminal shows it. What a program on a node has written is a stranger's text: it is shown line by line, without
// characters that act on the terminal.

import { formatAgo, moment } from '#cli/kit/duration.ts'
import type { Cli } from '#cli/kit/cli.ts'
import type { Column } from '#cli/kit/list.ts'
import type { Colour, Print } from '#cli/kit/print.ts'
import { printable } from '#cli/kit/printable.ts'
import { renderFacts } from '#cli/kit/table.ts'
import { parseIsoTime } from '#platform/clock.ts'
import type { TaskLineView, TaskView } from '#wire/tasks/task-api.ts'

const colours: Readonly<Partial<Record<TaskLineView['state'], Colour>>> = {
  completed: 'green',
  failed: 'red',
  unknown: 'red',
  expired: 'yellow',
  cancelled: 'yellow',
}

export const taskColumns = (nowMs: number): readonly Column<TaskLineView>[] => [
  { name: 'task', cell: ({ id }) => id },
  { name: 'node', cell: ({ node }) => node },
  { name: 'type', cell: ({ type }) => type },
  { name: 'state', cell: ({ state }) => ({ text: state, colour: colours[state] ?? 'plain' }) },
  { name: 'result', cell: resultText },
  { name: 'queued-by', cell: ({ queued_by: by }) => `${by.kind}:${by.name}` },
  {
    name: 'created',
    cell: ({ created_at: at }) => formatAgo(parseIsoTime(at) ?? nowMs, nowMs),
    value: ({ created_at: at }) => at,
  },
]

const resultText = ({ code, exit_code: exitCode }: Pick<TaskLineView, 'code' | 'exit_code'>): string => {
  if (code !== null) return exitCode === null ? code : `${code}, exit code ${exitCode}`
  return exitCode === null ? '' : `exit code ${exitCode}`
}

export const showTask = (cli: Cli, print: Print, task: TaskView): void =>
  print.answer(task, (paint) => [
    ...renderFacts(factsOf(task, cli.clock.nowMs(), paint(colours[task.state] ?? 'plain', task.state))),
    ...outputLines(task),
  ])

export const storyHint = ({ node, created_at: since, correlation }: TaskView): string =>
  `its story: muster journal list --node ${node} --since ${since} --correlation ${correlation}`

type Fact = readonly [name: string, value: string]

const factsOf = (task: TaskView, nowMs: number, state: string): readonly Fact[] => {
  const { dispatched, cancelled, result } = task
  const outcome = result === null ? '' : [resultText(result), result.detail].filter(Boolean).join(': ')
  return [
    ['task', task.id],
    ['node', `${task.node}, epoch ${task.epoch}`],
    ['type', task.type],
    ['parameters', JSON.stringify(task.parameters)],
    ['state', state],
    ...(task.waits_because === undefined ? [] : [['waits', task.waits_because] as const]),
    ...(outcome === '' ? [] : [['result', outcome] as const]),
    ...(cancelled === null ? [] : [['cancelled', `by ${cancelled.by}: ${cancelled.why}`] as const]),
    ['queued', `${moment(task.created_at, nowMs)} by ${task.queued_by.kind}:${task.queued_by.name}`],
    ...(dispatched === null
      ? task.ended_at === null
        ? [['expires', moment(task.expires_at, nowMs)] as const]
        : []
      : [['dispatched', `${moment(dispatched.at, nowMs)}, number ${dispatched.counter}`] as const]),
    ...(result === null || result.started_at === null ? [] : [['started', moment(result.started_at, nowMs)] as const]),
    ...(task.ended_at === null ? [] : [['ended', moment(task.ended_at, nowMs)] as const]),
    ...(result === null || result.evidence === null ? [] : [['evidence', JSON.stringify(result.evidence)] as const]),
  ]
}

const outputLines = ({ result }: TaskView): readonly string[] => {
  if (result === null || result.output === null) return []
  const { head, tail, bytes } = result.output
  const kept = Buffer.byteLength(head) + Buffer.byteLength(tail)
  const missing = Math.max(0, bytes - kept)
  return ['', ...linesOf(head), ...(missing === 0 ? [] : [`... ${missing} bytes are left out ...`]), ...linesOf(tail)]
}

const linesOf = (text: string): readonly string[] =>
  text === ''
    ? []
    : text
        .replace(/\n$/, '')
        .split('\n')
        .map((line) => printable(line.replaceAll('\t', '    ')))
