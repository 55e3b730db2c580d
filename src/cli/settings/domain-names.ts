// `muster domain names` and `muster domain join-string`: the names of the plane, and the join strings that carry them.

import type { Command } from 'commander'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { formatAgo } from '#cli/kit/duration.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import { localAddressIn, localWarning } from '#cli/kit/local-address.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { printable } from '#cli/kit/printable.ts'
import { showList, type Column, type ListOptions } from '#cli/kit/list.ts'
import { lists, noun, performs, plans, verb } from '#cli/kit/verb.ts'
import { withPlan, type PlanOptions } from '#cli/plans/plan.ts'
import { parseIsoTime } from '#platform/clock.ts'
import { planeNamesApi, type PlaneNameView } from '#wire/settings/names-api.ts'

export const declareDomainNames = (domain: Command, cli: Cli): void => {
  const join = verb(
    domain,
    'join-string',
    'Print a join string without a token, for machines that join by their hardware identity',
    [
      ['muster domain join-string', ''],
      ['muster domain join-string > image/etc/muster/join', 'into the image of diskless machines'],
    ],
  )
  performs(cli, join, joinString)

  const names = noun(domain.command('names').description('Names that the plane serves, and served before'), [
    ['muster domain names list', ''],
    ['muster domain names drop old.example --plan', 'who would be stranded'],
  ])
  const list = verb(names, 'list', 'List the names, and which nodes still need those that are to be dropped', [
    ['muster domain names list', ''],
  ])
  performs(cli, lists(list, nameColumns(0)), namesList)

  const drop = verb(
    names,
    'drop [name]',
    'Take a name that is not configured any more out of the certificates, also where nodes still need it',
    [
      ['muster domain names drop old.example --plan', 'who would be stranded'],
      ['muster domain names drop old.example', ''],
    ],
  )
  plans(drop)
  performs(cli, drop, namesDrop)
}

const joinString = async (cli: Cli, options: GlobalOptions): Promise<void> => {
  const answer = await connect(cli, options).ask(planeNamesApi.joinString)
  const print = printer(cli, options)
  print.answer(answer, () => [printable(answer.join)])
  const local = localAddressIn(answer.join)
  if (local !== null) print.note(localWarning(local))
  print.note(
    'it holds no secret: a machine joins with it if its hardware is registered (muster node enroll ID --mac MAC)',
  )
}

const namesList = async (cli: Cli, options: ListOptions): Promise<void> => {
  const answer = await connect(cli, options).ask(planeNamesApi.list)
  const columns = nameColumns(cli.clock.nowMs())
  showList(cli, options, { items: answer.names, columns, body: (names) => ({ ...answer, names }) })
}

const nameColumns = (nowMs: number): readonly Column<PlaneNameView>[] => [
  { name: 'name', cell: ({ name }) => name },
  { name: 'use', cell: ({ use }) => use },
  {
    name: 'state',
    cell: ({ state }) => ({
      text: state,
      colour: state === 'kept' ? 'yellow' : state === 'dropped' ? 'dim' : 'green',
    }),
  },
  {
    name: 'since',
    cell: ({ dropped_at: dropped, since }) => formatAgo(parseIsoTime(dropped ?? since) ?? nowMs, nowMs),
    value: ({ dropped_at: dropped, since }) => dropped ?? since,
  },
  { name: 'still-needed-by', cell: neededBy },
]

const neededBy = ({ state, needed_by: needs, dropped_by: by }: PlaneNameView): string => {
  if (state === 'dropped') return `nobody: dropped by ${by ?? '?'}, forbidden for programs`
  if (needs === null) return ''
  const counts = [
    [needs.nodes, 'nodes without the new address'],
    [needs.images, 'nodes that join by hardware'],
    [needs.tokens, 'unused tokens'],
    [needs.repair_bundles, 'repair bundles'],
    [needs.join_strings, 'join strings without a token'],
  ] as const
  const said = counts.filter(([count]) => count > 0).map(([count, what]) => `${what}: ${count}`)
  return said.length === 0 ? 'nobody: it is about to go' : said.join(', ')
}

const namesDrop = withPlan(
  'drop-name',
  (_options: PlanOptions, name: string | undefined) => ({ kind: 'drop-name' as const, name: named(name) }),
  async (cli: Cli, options: PlanOptions, name: string | undefined) => {
    const about = { NAME: named(name) }
    const dropped = await connect(cli, options).ask(planeNamesApi.drop, { params: { name: named(name) }, about })
    printer(cli, options).answer(dropped, () => [`${printable(dropped.name)} dropped`])
  },
)

const named = (name: string | undefined): string => {
  if (name === undefined) throw usageFailure('Which name?', 'muster domain names drop NAME, or --apply PLAN')
  return name
}
