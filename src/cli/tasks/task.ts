// `muster task`: instructions to nodes, and what became of them.

import { Option, type Command } from 'commander'
import { shippedTaskTypes } from '#domain/core/task-types.ts'
import { taskStates } from '#domain/tasks/task.ts'
import { durationOption, nodeName } from '#cli/kit/arguments.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { showList, type ListOptions } from '#cli/kit/list.ts'
import { connect, everyPage } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { lists, noun, performs, verb } from '#cli/kit/verb.ts'
import { taskApi, type TaskListQuery } from '#wire/tasks/task-api.ts'
import { showTask, storyHint, taskColumns } from './task-lines.ts'
import { taskParametersOf, type ParameterOptions } from './task-parameters.ts'
import { createMany, manyOptions, selectionIn, type ManyOptions } from './create-many.ts'
import { awaitTask } from './await-task.ts'

const anId = 'task_mfrggzdfmztwq2lknnwg23tpob'

export const declareTask = (task: Command, cli: Cli): void => {
  noun(task, [
    ['muster task create --node gpu-001 --type service --param name=dcgm --param action=restart --wait', ''],
    ['muster task list --node gpu-001', ''],
    [`muster task show ${anId}`, ''],
  ])
  const create = verb(task, 'create', 'Queue a task for a node, which verifies its signature and carries it out once', [
    ['muster task create --node gpu-001 --type run --param name=firmware-check --wait', 'and print what it wrote'],
    [`muster task create --node gpu-001 --type run --param name=burn-in --param 'arguments:=["--hours","2"]'`, ''],
    [
      'muster task create --node gpu-001 --type x-rack-led --params led.yaml',
      'a type of the host, parameters of a file',
    ],
    ['muster task create --node gpu-001 --type reboot --key change-4711', 'safe to repeat: it is one task'],
    ['muster task create --vcluster training --type reboot --concurrency 4 --failures 2', 'plans it for many nodes'],
  ])
    .requiredOption('--type <type>', `${shippedTaskTypes.join(', ')}, or one of the host (x-NAME)`)
    .option(
      '--param <name=value>',
      'a parameter; NAME:=JSON for a list, a number or an object; repeatable',
      collect,
      [],
    )
    .option('--params <file>', 'the parameters as YAML or JSON; - reads standard input')
    .option('--expires <duration>', 'how long it may wait for the node, at most 24h (default: 1h)')
    .option('--key <text>', 'an idempotency key of your own: repeated with the same key, it is the same task')
    .option('--wait', 'wait until it has ended, and print its result')
  manyOptions(create).addHelpText('after', manyHelp)
  performs(cli, create, taskCreate)

  const list = verb(task, 'list', 'List tasks, oldest first', [
    ['muster task list', ''],
    ['muster task list --node gpu-001 --state dispatched', 'what a node is at'],
    ['muster task list --state failed -o json', 'for scripts'],
  ])
    .option('--node <id>', 'those of one node')
    .addOption(new Option('--state <state>', 'those in this state').choices([...taskStates]))
    .option('--type <type>', 'those of this type')
    .option('--rollout <id>', 'those of this rollout')
  performs(cli, lists(list, taskColumns(0)), taskList)

  const show = verb(task, 'show <id>', 'Show a task and its result', [[`muster task show ${anId}`, '']])
  performs(cli, show, taskShow)

  const cancel = verb(task, 'cancel <id>', 'Cancel a task that its node has not been sent yet', [
    [`muster task cancel ${anId} --reason "wrong node"`, ''],
  ]).option('--reason <text>', 'why; goes into the journal')
  performs(cli, cancel, taskCancel)

  const wait = verb(task, 'wait <id>', 'Wait until a task has ended, and print its result', [
    [`muster task wait ${anId}`, ''],
    [`muster task wait ${anId} --within 10m`, 'and no longer'],
  ]).option('--within <duration>', 'how long to wait at most')
  performs(cli, wait, taskWait)
}

const manyHelp = `For more than one node it shows a plan and does nothing without --yes (exit code ${exitCodes.onlyPlanned}). Applied, the plan
is a rollout: muster rollout show PLAN.`

const collect = (value: string, before: readonly string[]): readonly string[] => [...before, value]

type CreateOptions = ManyOptions & ParameterOptions & { readonly type: string; readonly expires?: string }

const taskCreate = async (cli: Cli, options: CreateOptions): Promise<void> => {
  const { type, expires, key } = options
  const select = await selectionIn(cli, options)
  const parameters = await taskParametersOf(cli, options)
  const tasks = {
    ...{ type, parameters },
    ...(expires === undefined ? {} : { expires_in_ms: durationOption('--expires', expires) }),
  }
  if (select !== null) return createMany(cli, options, select, tasks)
  const node = nodeName(options.node?.[0] ?? '')
  const plane = connect(cli, options)
  const task = await plane.ask(taskApi.create, {
    body: {
      ...{ node, ...tasks },
      ...(key === undefined ? {} : { idempotency_key: key }),
    },
    about: { ID: node },
  })
  const print = printer(cli, options)
  if (options.wait !== true) {
    showTask(cli, print, task)
    return print.note(`its result, when it has one: muster task wait ${task.id}`)
  }
  if (!print.structured) print.note(`queued: ${task.id}`)
  await awaitTask(cli, options, plane, task, null)
}

type TaskListOptions = ListOptions & Pick<TaskListQuery, 'node' | 'state' | 'type' | 'rollout'>

const taskList = async (cli: Cli, options: TaskListOptions): Promise<void> => {
  const { node, state, type, rollout } = options
  const plane = connect(cli, options)
  const tasks = await everyPage(
    (after) => plane.ask(taskApi.list, { query: { node, state, type, rollout, after, limit: 1000 } }),
    (page) => page.tasks,
  )
  showList(cli, options, { items: tasks, columns: taskColumns(cli.clock.nowMs()), body: (shown) => ({ tasks: shown }) })
  if (tasks.length === 0) printer(cli, options).note('no such tasks; a task is removed 7 days after its end')
}

const taskShow = async (cli: Cli, options: GlobalOptions, id: string): Promise<void> => {
  const task = await connect(cli, options).ask(taskApi.show, { params: { id } })
  const print = printer(cli, options)
  showTask(cli, print, task)
  print.note(storyHint(task))
}

const taskCancel = async (
  cli: Cli,
  options: GlobalOptions & { readonly reason?: string },
  id: string,
): Promise<void> => {
  const { reason } = options
  const task = await connect(cli, options).ask(taskApi.cancel, {
    params: { id },
    body: reason === undefined ? {} : { reason },
    about: { ID: id },
  })
  showTask(cli, printer(cli, options), task)
}

const taskWait = async (cli: Cli, options: GlobalOptions & { readonly within?: string }, id: string): Promise<void> => {
  const withinMs = options.within === undefined ? null : durationOption('--within', options.within)
  const plane = connect(cli, options)
  await awaitTask(cli, options, plane, await plane.ask(taskApi.show, { params: { id } }), withinMs)
}
