// What an operator does to a node.

import type { TSchema, Static } from 'typebox'
import { NodeDetail } from '#wire/api/operator-api.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { asCalled } from '#cli/kit/failure.ts'
import { schedulingText } from './node-runs-lines.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { renderFacts } from '#cli/kit/table.ts'

export const act = <T extends TSchema>(
  cli: Cli,
  options: GlobalOptions,
  id: string,
  action: string,
  body: object,
  answer: T,
): Promise<Static<T>> =>
  connect(cli, options).ask({
    method: 'POST',
    path: `/v1/nodes/${encodeURIComponent(id)}/${action}`,
    body,
    answer,
    about: { ID: id },
  })

const change =
  (action: string) =>
  async (cli: Cli, options: GlobalOptions, id: string): Promise<void> =>
    showState(cli, options, await act(cli, options, id, action, {}, NodeDetail))

export const nodeUndrain = change('undrain')
export const nodeRelease = change('release')
export const nodeApprove = change('approve')
export const nodeDeny = change('deny')

export const nodeDrain = async (cli: Cli, options: GlobalOptions & { done?: boolean }, id: string): Promise<void> =>
  showState(cli, options, await act(cli, options, id, 'drain', options.done === true ? { done: true } : {}, NodeDetail))

type WithReason = GlobalOptions & { readonly reason: string }

export const nodeSettle = async (cli: Cli, options: WithReason, id: string): Promise<void> =>
  showState(cli, options, await act(cli, options, id, 'settle', { reason: options.reason }, NodeDetail))

export const showState = (cli: Cli, options: GlobalOptions, node: Static<typeof NodeDetail>): void => {
  printer(cli, options).answer(node, () =>
    renderFacts([
      ['node', node.id],
      ['state', node.membership],
      ['scheduling', schedulingText(node.scheduling)],
      ['why', node.why],
    ]).map((line) => asCalled(line, cli.program)),
  )
}
