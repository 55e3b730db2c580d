// Work on nodes, as schedulers and people place it and give it back.

import type { AnswerOf } from '#wire/core/endpoint.ts'
import { parseIsoTime } from '#platform/clock.ts'
import { type AllocationView, allocationApi, type AllocationListQuery } from '#wire/fleet/allocation-api.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { formatAgo } from '#cli/kit/duration.ts'
import { moment } from '#cli/kit/moment.ts'
import { connect, type OperatorClient } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { renderFacts, renderHeadedTable, type Cell } from '#cli/kit/table.ts'

type CreateOptions = GlobalOptions & { readonly node: string; readonly vcluster: string; readonly owner: string }

export const allocationCreate = async (cli: Cli, options: CreateOptions, id: string): Promise<void> => {
  const { node, vcluster, owner } = options
  const allocation = await connect(cli, options).ask(allocationApi.create, {
    body: { id, node, vcluster, owner },
    about: { ID: node },
  })
  show(cli, options, allocation)
}

export const allocationShow = async (cli: Cli, options: GlobalOptions, id: string): Promise<void> =>
  show(cli, options, await connect(cli, options).ask(allocationApi.show, { params: { id } }))

export const allocationRelease = async (
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

type ListOptions = GlobalOptions & {
  readonly node?: string
  readonly vcluster?: string
  readonly state: NonNullable<AllocationListQuery['state']>
}

export const allocationList = async (cli: Cli, options: ListOptions): Promise<void> => {
  const allocations = await everyAllocation(connect(cli, options), options)
  const nowMs = cli.clock.nowMs()
  const print = printer(cli, options)
  print.answer({ allocations }, (paint) =>
    allocations.length === 0
      ? []
      : renderHeadedTable(
          ['ALLOCATION', 'NODE', 'VCLUSTER', 'OWNER', 'STATE', 'CREATED', 'WHY'],
          allocations.map((one) => allocationRow(one, nowMs)),
          paint,
        ),
  )
  if (allocations.length === 0) print.note('no such allocations; released ones too: muster allocation list --state all')
}

const everyAllocation = async (plane: OperatorClient, options: ListOptions): Promise<AllocationView[]> => {
  const { node, vcluster, state } = options
  const allocations: AllocationView[] = []
  let after: string | undefined
  do {
    const page: AnswerOf<typeof allocationApi.list> = await plane.ask(allocationApi.list, {
      query: { node, vcluster, state, after, limit: 1000 },
    })
    allocations.push(...page.allocations)
    after = page.next ?? undefined
  } while (after !== undefined)
  return allocations
}

const allocationRow = (allocation: AllocationView, nowMs: number): Cell[] => [
  allocation.id,
  allocation.node,
  allocation.vcluster,
  allocation.owner,
  { text: stateText(allocation), colour: allocation.state === 'releasing' ? 'yellow' : 'plain' },
  formatAgo(parseIsoTime(allocation.created_at) ?? nowMs, nowMs),
  allocation.why ?? '',
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
