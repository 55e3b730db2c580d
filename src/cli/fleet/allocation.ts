// `muster allocation`: work on nodes, placed and given back.

import { Option, type Command } from 'commander'
import { allocationStates } from '#domain/fleet/allocation.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { lists, noun, performs, verb } from '#cli/kit/verb.ts'
import { parseIsoTime } from '#platform/clock.ts'
import { type AllocationView, allocationApi, type AllocationListQuery } from '#wire/fleet/allocation-api.ts'
import { formatAgo, moment } from '#cli/kit/duration.ts'
import { connect, everyPage, type OperatorClient } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { showList, type Column, type ListOptions } from '#cli/kit/list.ts'
import { renderFacts } from '#cli/kit/table.ts'

export const declareAllocation = (allocation: Command, cli: Cli): void => {
  noun(allocation, [
    ['muster allocation list --node gpu-001', ''],
    ['muster allocation create job-17 --node gpu-001 --vcluster training --owner slurm', ''],
    ['muster allocation release job-17', ''],
  ])
  const create = verb(allocation, 'create <id>', 'Place work on a schedulable node; safe to repeat with the same id', [
    ['muster allocation create job-17 --node gpu-001 --vcluster training --owner slurm', ''],
  ])
    .requiredOption('--node <id>', 'the node it runs on')
    .requiredOption('--vcluster <name>', 'the vCluster the node has to be in')
    .requiredOption('--owner <name>', 'who is asked to move it when it has to go')
  performs(cli, create, allocationCreate)

  const list = verb(allocation, 'list', 'List allocations: where, whose, in which state', [
    ['muster allocation list', 'all that are not released'],
    ['muster allocation list --node gpu-001 --state releasing', 'what a drain still waits for'],
    ['muster allocation list -o json', 'for scripts'],
  ])
    .option('--node <id>', 'only those on this node')
    .option('--vcluster <name>', 'only those of this vCluster')
    .addOption(
      new Option('--state <state>', 'only those in this state; live is running or releasing')
        .choices(['live', 'all', ...allocationStates])
        .default('live'),
    )
  performs(cli, lists(list, allocationColumns(0)), allocationList)

  const show = verb(allocation, 'show <id>', 'Show an allocation', [['muster allocation show job-17', '']])
  performs(cli, show, allocationShow)

  const release = verb(
    allocation,
    'release <id>',
    'Release an allocation; the last one of a draining node ends its drain',
    [
      ['muster allocation release job-17', ''],
      ['muster allocation release job-17 --reason "moved to gpu-002"', ''],
    ],
  ).option('--reason <text>', 'why; goes into the journal')
  performs(cli, release, allocationRelease)
}

type CreateOptions = GlobalOptions & { readonly node: string; readonly vcluster: string; readonly owner: string }

const allocationCreate = async (cli: Cli, options: CreateOptions, id: string): Promise<void> => {
  const { node, vcluster, owner } = options
  const allocation = await connect(cli, options).ask(allocationApi.create, {
    body: { id, node, vcluster, owner },
    about: { ID: node },
  })
  show(cli, options, allocation)
}

const allocationShow = async (cli: Cli, options: GlobalOptions, id: string): Promise<void> =>
  show(cli, options, await connect(cli, options).ask(allocationApi.show, { params: { id } }))

const allocationRelease = async (
  cli: Cli,
  options: GlobalOptions & { readonly reason?: string },
  id: string,
): Promise<void> => {
  const allocation = await connect(cli, options).ask(allocationApi.release, {
    params: { id },
    body: options.reason === undefined ? {} : { reason: options.reason },
  })
  show(cli, options, allocation)
}

type AllocationListOptions = ListOptions & {
  readonly node?: string
  readonly vcluster?: string
  readonly state: NonNullable<AllocationListQuery['state']>
}

const allocationList = async (cli: Cli, options: AllocationListOptions): Promise<void> => {
  const allocations = await everyAllocation(connect(cli, options), options)
  const columns = allocationColumns(cli.clock.nowMs())
  showList(cli, options, { items: allocations, columns, body: (shown) => ({ allocations: shown }) })
  if (allocations.length === 0)
    printer(cli, options).note('no such allocations; released ones too: muster allocation list --state all')
}

const everyAllocation = async (plane: OperatorClient, options: AllocationListOptions): Promise<AllocationView[]> => {
  const { node, vcluster, state } = options
  return everyPage(
    (after) =>
      plane.ask(allocationApi.list, {
        query: { node, vcluster, state, after, limit: 1000 },
      }),
    (page) => page.allocations,
  )
}

const allocationColumns = (nowMs: number): readonly Column<AllocationView>[] => [
  { name: 'allocation', cell: ({ id }) => id },
  { name: 'node', cell: ({ node }) => node },
  { name: 'vcluster', cell: ({ vcluster }) => vcluster },
  { name: 'owner', cell: ({ owner }) => owner },
  {
    name: 'state',
    cell: (one) => ({ text: stateText(one), colour: one.state === 'releasing' ? 'yellow' : 'plain' }),
  },
  {
    name: 'created',
    cell: ({ created_at: at }) => formatAgo(parseIsoTime(at) ?? nowMs, nowMs),
    value: ({ created_at: at }) => at,
  },
  { name: 'why', cell: ({ why }) => why ?? '' },
]

const stateText = ({ state, forced }: AllocationView): string => (forced ? `${state} by force` : state)

const show = (cli: Cli, options: GlobalOptions, allocation: AllocationView): void => {
  const nowMs = cli.clock.nowMs()
  const { changed_at: changedAt, released_by: releasedBy, why } = allocation
  printer(cli, options).answer(allocation, () =>
    renderFacts([
      ['allocation', allocation.id],
      ['node', allocation.node],
      ['vcluster', allocation.vcluster],
      ['owner', allocation.owner],
      ['state', `${stateText(allocation)}${changedAt === null ? '' : `, since ${moment(changedAt, nowMs)}`}`],
      ...(why === null ? [] : [['why', why] as const]),
      ...(releasedBy === null ? [] : [['released by', releasedBy] as const]),
      ['created', `${moment(allocation.created_at, nowMs)} by ${allocation.created_by}`],
    ]),
  )
}
