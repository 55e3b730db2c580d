// What an operator does to a node.

import { nodeActionApi } from '#wire/node/node-action-api.ts'
import type { NodeDetail } from '#wire/node/node-api.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { asCalled } from '#cli/kit/failure.ts'
import { schedulingText } from './node-runs-lines.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { renderFacts } from '#cli/kit/table.ts'

type Change = 'undrain' | 'release' | 'approve' | 'deny'

const change =
  (action: Change) =>
  async (cli: Cli, options: GlobalOptions, id: string): Promise<void> =>
    showState(
      cli,
      options,
      await connect(cli, options).ask(nodeActionApi[action], { params: { id }, about: { ID: id } }),
    )

export const nodeUndrain = change('undrain')
export const nodeRelease = change('release')
export const nodeApprove = change('approve')
export const nodeDeny = change('deny')

export const nodeDrain = async (cli: Cli, options: GlobalOptions & { done?: boolean }, id: string): Promise<void> => {
  const body = options.done === true ? { done: true } : {}
  const plane = connect(cli, options)
  showState(cli, options, await plane.ask(nodeActionApi.drain, { params: { id }, body, about: { ID: id } }))
}

export const nodeSettle = async (
  cli: Cli,
  options: GlobalOptions & { readonly reason: string },
  id: string,
): Promise<void> => {
  const body = { reason: options.reason }
  const plane = connect(cli, options)
  showState(cli, options, await plane.ask(nodeActionApi.settle, { params: { id }, body, about: { ID: id } }))
}

export const showState = (cli: Cli, options: GlobalOptions, node: NodeDetail): void => {
  printer(cli, options).answer(node, () =>
    renderFacts([
      ['node', node.id],
      ['state', node.membership],
      ['scheduling', schedulingText(node.scheduling)],
      ['why', node.why],
    ]).map((line) => asCalled(line, cli.program)),
  )
}
