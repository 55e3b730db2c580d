// `muster program`: the certificates of programs on nodes.

import type { Command } from 'commander'
import { nodeName } from '#cli/kit/arguments.ts'
import type { Cli } from '#cli/kit/cli.ts'
import { connect, everyPage } from '#cli/kit/operator-client.ts'
import { showList, type Column, type ListOptions } from '#cli/kit/list.ts'
import { printer } from '#cli/kit/print.ts'
import { lists, noun, performs, verb } from '#cli/kit/verb.ts'
import { nodeNamesApi, type ProgramView } from '#wire/programs/names-api.ts'

export const declareProgram = (program: Command, cli: Cli): void => {
  noun(program, [
    ['muster program list', ''],
    ['muster profile set gpu-cloud \'outputs=[{"name":"etcd"}]\'', 'a certificate for every node of the profile'],
  ])
  const list = verb(program, 'list', 'List the certificates of programs: node, output, until when, names', [
    ['muster program list', ''],
    ['muster program list --node gpu-001', ''],
  ]).option('--node <id>', 'only those of this node')
  performs(cli, lists(list, columns), programList)
}

type ProgramListOptions = ListOptions & { readonly node?: string }

const page = 500

const programList = async (cli: Cli, options: ProgramListOptions): Promise<void> => {
  const plane = connect(cli, options)
  const where = options.node === undefined ? {} : { node: nodeName(options.node) }
  const programs = await everyPage(
    (after) => plane.ask(nodeNamesApi.programs, { query: { ...where, limit: page, after } }),
    (answer) => answer.programs,
  )
  showList(cli, options, { items: programs, columns, body: (shown) => ({ programs: shown }) })
  if (programs.length > 0) return
  const whose = options.node === undefined ? '' : `${options.node} has `
  printer(cli, options).note(`${whose}no certificates for programs; an output makes them: muster program --help`)
}

const columns: readonly Column<ProgramView>[] = [
  { name: 'node', cell: ({ node }) => node },
  { name: 'output', cell: ({ output }) => output },
  { name: 'epoch', cell: ({ epoch }) => String(epoch), value: ({ epoch }) => epoch },
  {
    name: 'until',
    cell: ({ current, ended }) => (current === null ? `ended: ${ended?.why ?? 'unknown'}` : current.not_after),
  },
  { name: 'issuer', cell: ({ current }) => current?.issuer_name ?? '' },
  { name: 'serial', cell: ({ current }) => current?.serial ?? '' },
  { name: 'names', cell: ({ current }) => current?.names.join(' ') ?? '' },
]
