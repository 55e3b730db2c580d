// What an operator does to a node.

import type { TSchema, Static } from 'typebox'
import { NodeDetail } from '#wire/operator-api.ts'
import { ReceiptView } from '#wire/receipt-api.ts'
import { awaitReceipt, showReceipt, usualWait } from './await-receipt.ts'
import type { Cli, GlobalOptions } from './cli.ts'
import { durationOption } from './duration-option.ts'
import { asCalled } from './failure.ts'
import { connect } from './operator-client.ts'
import { printer } from './print.ts'
import { renderFacts } from './table.ts'

const act = <T extends TSchema>(
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

type Waiting = { readonly wait?: string | false }

const withdraw = async (
  cli: Cli,
  options: GlobalOptions & Waiting,
  id: string,
  action: 'quarantine' | 'revoke' | 'decommission',
  body: object,
): Promise<void> => {
  // Read before anything is sent: a mistake in it must not come after the deed.
  const waitMs = options.wait === false ? 0 : durationOption('--wait', options.wait ?? usualWait)
  const receipt = await act(cli, options, id, action, body, ReceiptView)
  showReceipt(cli, printer(cli, options), await awaitReceipt(cli, connect(cli, options), receipt, waitMs))
}

export const nodeQuarantine = (cli: Cli, options: WithReason & Waiting, id: string): Promise<void> =>
  withdraw(cli, options, id, 'quarantine', { reason: options.reason })

export const nodeRevoke = (cli: Cli, options: WithReason & Waiting, id: string): Promise<void> =>
  withdraw(cli, options, id, 'revoke', { reason: options.reason })

export const nodeDecommission = (
  cli: Cli,
  options: GlobalOptions & Waiting & { force?: boolean },
  id: string,
): Promise<void> => withdraw(cli, options, id, 'decommission', options.force === true ? { force: true } : {})

export const showState = (cli: Cli, options: GlobalOptions, node: Static<typeof NodeDetail>): void => {
  printer(cli, options).answer(node, () =>
    renderFacts([
      ['node', node.id],
      ['state', node.membership],
      ['scheduling', [node.scheduling.state, ...node.scheduling.reasons].join(', ')],
      ['why', node.why],
    ]).map((line) => asCalled(line, cli.program)),
  )
}
