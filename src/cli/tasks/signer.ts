// `muster signer`: the keys that sign tasks.

import type { Command } from 'commander'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { formatAgo, formatSpan } from '#cli/kit/duration.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import { showList, type Column, type ListOptions } from '#cli/kit/list.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import type { Cell } from '#cli/kit/table.ts'
import { lists, noun, performs, plans, verb } from '#cli/kit/verb.ts'
import { withPlan, type PlanOptions } from '#cli/plans/plan.ts'
import { parseIsoTime } from '#platform/clock.ts'
import { signerApi, type SignerListAnswer, type SignerView } from '#wire/tasks/signer-api.ts'

export const declareSigner = (signer: Command, cli: Cli): void => {
  noun(signer, [
    ['muster signer list', ''],
    ['muster signer rotate', 'a new key, which signs when every host has it'],
  ])
  const list = verb(signer, 'list', 'List the task signers, and how many nodes have which', [
    ['muster signer list', ''],
  ])
  performs(cli, lists(list, signerColumns(0)), signerList)

  const rotate = verb(signer, 'rotate', 'Replace the key that signs tasks', [
    ['muster signer rotate', 'the new one reaches the nodes first, and signs after 24 h'],
    ['muster signer rotate --now --plan', 'how many nodes would refuse tasks until they have fetched it'],
    ['muster signer rotate --now', 'at once'],
    ['muster signer rotate --back', 'undoes the last rotation'],
  ])
    .option('--now', 'it signs at once; nodes that have not fetched it refuse tasks until they have')
    .option('--back', 'drop a signer that does not sign yet; else the one before signs again')
  plans(rotate)
  performs(cli, rotate, signerRotate)

  const withdraw = verb(signer, 'withdraw [key]', 'Withdraw a task signer whose key may be known to others, at once', [
    [
      'muster signer withdraw 3f9a... --reason "a backup was stolen" --plan',
      'what it would mean; a KEY of muster signer list',
    ],
    ['muster signer withdraw 3f9a... --reason "a backup was stolen"', ''],
  ]).option('--reason <text>', 'why; goes into the journal')
  plans(withdraw)
  performs(cli, withdraw, signerWithdraw)
}

const signerList = async (cli: Cli, options: ListOptions): Promise<void> => {
  const answer = await connect(cli, options).ask(signerApi.list)
  const columns = signerColumns(cli.clock.nowMs())
  showList(cli, options, { items: answer.signers, columns, body: (signers) => ({ ...answer, signers }) })
  const print = printer(cli, options)
  print.note(reportedIn(answer))
  for (const warning of answer.warnings) print.note(warning)
}

type RotateOptions = PlanOptions & { readonly now?: boolean; readonly back?: boolean }

const signerRotate = withPlan(
  'rotate-signer',
  ({ now, back }: RotateOptions) => {
    if (now !== true || back === true) throw usageFailure('Only a rotation with --now has a plan.', 'Add --now')
    return { kind: 'rotate-signer' as const }
  },
  async (cli: Cli, options: RotateOptions) => {
    if (options.now === true && options.back === true) throw usageFailure('Give either --now or --back.')
    const how = options.now === true ? 'now' : options.back === true ? 'back' : 'usual'
    show(cli, options, await connect(cli, options).ask(signerApi.rotate, { body: { how } }))
  },
)

type WithdrawOptions = PlanOptions & { readonly reason?: string }

const signerWithdraw = withPlan(
  'withdraw-signer',
  ({ reason }: WithdrawOptions, key: string | undefined) => ({
    kind: 'withdraw-signer' as const,
    ...asked(key, reason),
  }),
  async (cli: Cli, options: WithdrawOptions, key: string | undefined) => {
    const body = asked(key, options.reason)
    show(cli, options, await connect(cli, options).ask(signerApi.withdraw, { body }))
  },
)

const asked = (key: string | undefined, reason: string | undefined) => {
  if (key === undefined || !/^[0-9a-f]{40}$/.test(key))
    throw usageFailure('KEY is a key as signer list shows it: 40 hexadecimal digits.', 'muster signer list')
  if (reason === undefined) throw usageFailure('Say why: --reason TEXT goes into the journal.')
  return { key, reason }
}

const show = (cli: Cli, options: GlobalOptions, answer: SignerListAnswer): void => {
  const columns = signerColumns(cli.clock.nowMs())
  showList(cli, options, { items: answer.signers, columns, body: (signers) => ({ ...answer, signers }) })
  printer(cli, options).note('connected nodes fetch it at once; how many have it: muster signer list')
}

const reportedIn = ({ number, reported }: SignerListAnswer): string => {
  const all = reported.reduce((sum, { nodes }) => sum + nodes, 0)
  const newest = reported.reduce((sum, one) => (one.number >= number ? sum + one.nodes : sum), 0)
  return `statement ${number}: ${newest} of ${all} nodes that take tasks have it (as reported; it may be a minute old)`
}

const colours: Readonly<Record<SignerView['state'], 'green' | 'red' | null>> = {
  ...{ next: null, signing: 'green', grace: null, withdrawn: 'red', retired: null },
}

const signerColumns = (nowMs: number): readonly Column<SignerView>[] => {
  const msOf = (time: string): number => parseIsoTime(time) ?? nowMs
  return [
    { name: 'key', cell: ({ key }) => key },
    { name: 'version', cell: ({ version }) => String(version), value: ({ version }) => version },
    {
      name: 'state',
      cell: ({ state }): Cell => {
        const colour = colours[state]
        return colour === null ? state : { text: state, colour }
      },
    },
    { name: 'since', cell: ({ since }) => formatAgo(msOf(since), nowMs), value: ({ since }) => since },
    { name: 'until', cell: (signer) => untilIn(signer, msOf, nowMs), value: ({ until }) => until },
    { name: 'nodes', cell: ({ nodes }) => (nodes === null ? '' : String(nodes)), value: ({ nodes }) => nodes },
    { name: 'reason', cell: ({ reason }) => reason ?? '', wide: true },
  ]
}

const untilIn = ({ state, until }: SignerView, msOf: (time: string) => number, nowMs: number): string => {
  if (until === null) return ''
  const left = formatSpan(Math.max(0, msOf(until) - nowMs))
  return state === 'next' ? `signs in ${left}` : `retires in ${left}`
}
