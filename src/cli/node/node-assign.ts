// Which vCluster nodes are in. Several are changed one by one: each is a transaction of its own, and what failed is told.

import { vclusterApi } from '#wire/fleet/vcluster-api.ts'
import type { NodeDetail } from '#wire/node/node-api.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { Failure } from '#cli/kit/failure.ts'
import { inParallel } from '#cli/kit/in-parallel.ts'
import { connect, type OperatorClient } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { renderTable, type Cell } from '#cli/kit/table.ts'

type To = GlobalOptions & { readonly to: string }
type Force = GlobalOptions & { readonly force?: boolean }

export const nodeAssign = (cli: Cli, options: To, ids: readonly string[]): Promise<void> =>
  changeAll(cli, options, ids, (plane, id) =>
    plane.tryAsk(vclusterApi.assign, { params: { id }, body: { to: options.to }, about: { ID: id } }),
  )

export const nodeMove = (cli: Cli, options: To & Force, ids: readonly string[]): Promise<void> =>
  changeAll(cli, options, ids, (plane, id) =>
    plane.tryAsk(vclusterApi.move, { params: { id }, body: { to: options.to, ...forced(options) }, about: { ID: id } }),
  )

export const nodeUnassign = (cli: Cli, options: Force, ids: readonly string[]): Promise<void> =>
  changeAll(cli, options, ids, (plane, id) =>
    plane.tryAsk(vclusterApi.unassign, { params: { id }, body: forced(options), about: { ID: id } }),
  )

const forced = ({ force }: Force) => (force === true ? { force: true } : {})

type Result = {
  readonly id: string
  /** As it is now; null: it failed. */
  readonly node: NodeDetail | null
  readonly code: string | null
  readonly detail: string | null
}

const atOnce = 8

const changeAll = async (
  cli: Cli,
  options: GlobalOptions,
  ids: readonly string[],
  ask: (plane: OperatorClient, id: string) => Promise<NodeDetail | Failure>,
): Promise<void> => {
  const plane = connect(cli, options)
  const change = async (id: string): Promise<Result> => {
    const answer = await ask(plane, id)
    if (!(answer instanceof Failure)) return { id, node: answer, code: null, detail: null }
    // Of one there is nothing else to say; a key that is not valid fails all alike.
    if (ids.length === 1 || answer.exit === exitCodes.notAllowed) throw answer
    return { id, node: null, code: answer.code, detail: answer.detail ?? answer.message }
  }
  const results = await inParallel(ids, atOnce, change)
  const print = printer(cli, options)
  print.answer({ results }, (paint) => renderTable(results.map(rowOf), paint))
  const failed = results.filter(({ node }) => node === null).length
  if (failed === 0) return
  print.note(`${failed} of ${results.length} failed; next: see them with muster node show ID, and repeat for those`)
  cli.finish(exitCodes.partly)
}

const rowOf = ({ id, node, code, detail }: Result): Cell[] =>
  node === null
    ? [id, { text: 'failed', colour: 'red' }, `${code} ${detail}`]
    : [id, node.vcluster === null ? 'in no vcluster' : `in ${node.vcluster}`, node.scheduling.state]
