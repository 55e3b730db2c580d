// Several nodes are changed one by one: each is its own transaction, and failures are listed.

import type { NodeDetail } from '#wire/node/node-api.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { exitCodes, type ExitCode } from '#cli/kit/exit-codes.ts'
import { Failure } from '#cli/kit/failure.ts'
import { inParallel } from '#cli/kit/in-parallel.ts'
import { connect, type OperatorClient } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { renderHeadedTable, type Cell } from '#cli/kit/table.ts'

const atOnce = 8

/** What became of one of several. */
export type Asked<T> = {
  readonly id: string
  /** Null: it was refused, for the reason below. */
  readonly done: T | null
  readonly code: string | null
  readonly detail: string | null
  readonly exit: ExitCode
}

export const askEach = <T>(
  ids: readonly string[],
  ask: (id: string) => Promise<T | Failure>,
): Promise<readonly Asked<T>[]> =>
  inParallel([...new Set(ids)], atOnce, async (id) => {
    const answer = await ask(id)
    if (!(answer instanceof Failure)) return { id, done: answer, code: null, detail: null, exit: exitCodes.ok }
    // Of one there is nothing else to say; a key that is not valid fails all alike.
    if (ids.length === 1 || answer.exit === exitCodes.notAllowed) throw answer
    return { id, done: null, code: answer.code, detail: answer.detail ?? answer.message, exit: answer.exit }
  })

/** A line each: the id, and what `words` say of the node. */
export const changeAll = async <T = NodeDetail>(
  cli: Cli,
  options: GlobalOptions,
  ids: readonly string[],
  ask: (plane: OperatorClient, id: string) => Promise<T | Failure>,
  words: (node: T) => readonly [result: Cell, detail: Cell],
): Promise<void> => {
  const plane = connect(cli, options)
  const each = await askEach(ids, (id) => ask(plane, id))
  const results = each.map(({ done, exit: _exit, ...one }) => ({ ...one, node: done }))
  printer(cli, options).answer({ results }, (paint) =>
    renderHeadedTable(
      ['NODE', 'RESULT', 'DETAIL'],
      results.map((result) => (result.node === null ? failedRow(result) : [result.id, ...words(result.node)])),
      paint,
    ),
  )
  countFailed(cli, options, each)
}

export const failedRow = ({ id, code, detail }: Pick<Asked<unknown>, 'id' | 'code' | 'detail'>): Cell[] => [
  id,
  { text: 'failed', colour: 'red' },
  `${code} ${detail}`,
]

export const countFailed = (cli: Cli, options: GlobalOptions, each: readonly Asked<unknown>[]): void => {
  const failed = each.filter(({ done }) => done === null).length
  if (failed === 0) return
  printer(cli, options).note(
    `${failed} of ${each.length} failed; next: see them with muster node show ID, and repeat for those`,
  )
  // Such an order is no success, and is in force where it was given.
  const isPending = each.some(({ exit }) => exit === exitCodes.inForceHereOnly)
  cli.exit.finish(isPending ? exitCodes.inForceHereOnly : exitCodes.partly)
}
