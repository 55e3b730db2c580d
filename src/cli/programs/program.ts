// `muster program`: the certificates of programs on nodes.

import type { Command } from 'commander'
import { nodeName } from '#cli/kit/arguments.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { renderHeadedTable } from '#cli/kit/table.ts'
import { noun, performs, verb } from '#cli/kit/verb.ts'
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
  performs(cli, list, programList)
}

type ListOptions = GlobalOptions & { readonly node?: string }

const page = 500

const programList = async (cli: Cli, options: ListOptions): Promise<void> => {
  const plane = connect(cli, options)
  const where = options.node === undefined ? {} : { node: nodeName(options.node) }
  const programs: ProgramView[] = []
  let after: string | null = null
  do {
    const query: { node?: string; limit: number; after?: string } = { ...where, limit: page }
    if (after !== null) query.after = after
    const answer: { readonly programs: readonly ProgramView[]; readonly next: string | null } = await plane.ask(
      nodeNamesApi.programs,
      { query },
    )
    programs.push(...answer.programs)
    after = answer.next
  } while (after !== null)
  printer(cli, options).answer({ programs }, (paint) =>
    programs.length === 0
      ? []
      : renderHeadedTable(
          ['NODE', 'OUTPUT', 'EPOCH', 'UNTIL', 'SERIAL', 'NAMES'],
          programs.map(({ node, output, epoch, current, ended }) => [
            node,
            output,
            String(epoch),
            current === null ? `ended: ${ended?.why ?? 'unknown'}` : current.not_after,
            current?.serial ?? '',
            current?.names.join(' ') ?? '',
          ]),
          paint,
        ),
  )
}
