import { planeConfig } from '#plane/config/config.ts'
import { replaceLostKeys, type Replaced, type ReplaceOrder } from '#plane/foundation/replace-lost-key.ts'
import { openLog } from '#platform/log.ts'
import { callerName } from '#platform/this-process.ts'
import { asPlaneRan } from '#cli/plane/as-plane-ran.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import { planeTrouble } from '#cli/plane/plane-trouble.ts'
import { printer } from '#cli/kit/print.ts'
import { costOfReplacing } from './replacement-costs.ts'
import { renderFacts } from '#cli/kit/table.ts'

type ReplaceOptions = GlobalOptions & { readonly reason?: string }

/** As with a store in doubt: without a reason it says what speaks for it, and does nothing. */
export const caReplaceLost = async (cli: Cli, options: ReplaceOptions, keys: readonly string[]): Promise<void> => {
  const reason = options.reason?.trim()
  if (reason === '') throw usageFailure('--reason is empty: say why, for the journal')
  const order = reason === undefined ? null : { actor: `host:${callerName()}`, reason }
  const { found, again } = await replaced(cli, options, keys, order)
  const print = printer(cli, options)
  const body = { done: order !== null, keys: found.map((one) => ({ ...one, cost: costOfReplacing[one.role] })) }
  print.answer(body, () =>
    renderFacts(
      body.keys.flatMap(({ role, lost, cost }) => [
        [order === null ? 'would be replaced' : 'replaced', `the ${role} key (${lost})`] as const,
        ['', cost] as const,
      ]),
    ),
  )
  if (order !== null) return
  print.note(`Nothing was done. A backup that has ${found.length === 1 ? 'it' : 'them'} costs nothing. Else: ${again}`)
  cli.finish(exitCodes.refused)
}

const replaced = async (
  cli: Cli,
  options: ReplaceOptions,
  keys: readonly string[],
  order: ReplaceOrder | null,
): Promise<{ readonly found: readonly Replaced[]; readonly again: string }> => {
  const config = configOf(cli, options)
  try {
    const found = await replaceLostKeys(config, keys, order, openLog(config.logLevel, 'plane'))
    return { found, again: asPlaneRan(`muster ca replace-lost ${keys.join(' ')}`, config) }
  } catch (error) {
    throw planeTrouble(error, { config, help })
  }
}

const help = 'muster ca replace-lost --help'

const configOf = (cli: Cli, options: ReplaceOptions) => {
  try {
    return planeConfig(options, cli.env)
  } catch (error) {
    throw planeTrouble(error, { help })
  }
}
