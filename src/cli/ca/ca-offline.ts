// The verbs of `muster ca` that ask no plane: they work on the keys and the data folder of this machine.

import { readPlaneConfig, type PlaneConfig } from '#plane/config/config.ts'
import { initialisePlane } from '#plane/foundation/initialise-plane.ts'
import { openLog } from '#platform/log.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { planeTrouble, asPlaneRan } from '#cli/plane/plane-trouble.ts'
import { printer } from '#cli/kit/print.ts'
import { renderFacts } from '#cli/kit/table.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import { replaceLostKeys, type Replaced, type ReplaceOrder } from '#plane/foundation/replace-lost-key.ts'
import { callerName } from '#platform/this-process.ts'
import { costOfReplacing } from './ca.ts'

export const caInit = async (cli: Cli, options: GlobalOptions): Promise<void> => {
  const { config, firstRun, rootKeyFile, rootFingerprint, request } = await initialise(options, cli.env)
  const root = `sha256:${rootFingerprint}`
  const made = { data: config.dataFolder, made: firstRun, root, root_key: rootKeyFile, request }
  const print = printer(cli, options)
  print.answer(made, () =>
    renderFacts([
      ['data', `${config.dataFolder} ${firstRun ? 'made' : 'was there already; nothing was changed'}`],
      ['root', root],
      ...(rootKeyFile === null ? [] : [['root key', `${rootKeyFile}: move it to a safe place`] as const]),
      ...(request === null ? [] : [['request', `${request}: carry it to the key of the root`] as const]),
    ]),
  )
  if (request !== null) {
    print.note('next: where the root key is: muster ca sign --root-key KEY --root-cert FILE --request FILE')
    return print.note('then: on the plane: muster ca import FILE')
  }
  print.note(`next: muster plane --data ${config.dataFolder}`)
}

const initialise = async (options: GlobalOptions, env: Cli['env']) => {
  let config: PlaneConfig | undefined
  try {
    config = readPlaneConfig(options, env)
    return { config, ...(await initialisePlane(config, openLog(config, 'plane'))) }
  } catch (error) {
    throw planeTrouble(error, config === undefined ? {} : { config })
  }
}

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
  cli.exit.finish(exitCodes.refused)
}

const replaced = async (
  cli: Cli,
  options: ReplaceOptions,
  keys: readonly string[],
  order: ReplaceOrder | null,
): Promise<{ readonly found: readonly Replaced[]; readonly again: string }> => {
  const config = configOf(cli, options)
  try {
    const found = await replaceLostKeys(config, keys, order, openLog(config, 'plane'))
    return { found, again: asPlaneRan(`muster ca replace-lost ${keys.join(' ')}`, config) }
  } catch (error) {
    throw planeTrouble(error, { config, help })
  }
}

const help = 'muster ca replace-lost --help'

const configOf = (cli: Cli, options: ReplaceOptions) => {
  try {
    return readPlaneConfig(options, cli.env)
  } catch (error) {
    throw planeTrouble(error, { help })
  }
}
