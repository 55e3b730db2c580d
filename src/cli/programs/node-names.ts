// `muster node names`: the names and addresses that certificates for the programs of a node may carry.

import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { nodeName } from '#cli/kit/arguments.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { renderHeadedTable } from '#cli/kit/table.ts'
import { nodeNamesApi, type NodeNames } from '#wire/programs/names-api.ts'

export const nameActions = ['add', 'remove', 'list'] as const

export const nodeNames = async (
  cli: Cli,
  options: GlobalOptions,
  action: string,
  id: string,
  names: readonly string[],
): Promise<void> => {
  const plane = connect(cli, options)
  const params = { id: nodeName(id) }
  const about = { ID: id, NAME: names[0] ?? 'NAME' }
  if (action === 'list') return show(cli, options, await plane.ask(nodeNamesApi.names, { params, about }))
  if (action !== 'add' && action !== 'remove') {
    throw usageFailure(`${action} is not something to do with names.`, `One of ${nameActions.join(', ')}`)
  }
  if (names.length === 0) throw usageFailure('Which names?', `muster node names ${action} ${id} NAME`)
  const call = action === 'add' ? nodeNamesApi.addNames : nodeNamesApi.removeNames
  show(cli, options, await plane.ask(call, { params, body: { names: [...names] }, about }))
}

const show = (cli: Cli, options: GlobalOptions, answer: NodeNames): void => {
  const print = printer(cli, options)
  print.answer(answer, (paint) =>
    answer.names.length === 0
      ? []
      : renderHeadedTable(
          ['NAME', 'FROM', 'SINCE', 'BY'],
          answer.names.map(({ name, derived, since, by }) => [name, derived ? 'a template' : 'an operator', since, by]),
          paint,
        ),
  )
  if (answer.names.length === 0) print.note(`next: muster node names add ${answer.node} NAME`)
}
