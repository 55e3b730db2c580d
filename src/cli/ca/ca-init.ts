import { planeConfig, type PlaneConfig } from '#plane/config/config.ts'
import { initialisePlane } from '#plane/foundation/foundation.ts'
import { openLog } from '#platform/log.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { planeTrouble } from '#cli/plane/plane-trouble.ts'
import { printer } from '#cli/kit/print.ts'
import { renderFacts } from '#cli/kit/table.ts'

export const caInit = async (cli: Cli, options: GlobalOptions): Promise<void> => {
  const { config, firstRun, rootKeyFile } = await initialise(options, cli.env)
  const made = { data: config.dataFolder, made: firstRun, root_key: rootKeyFile }
  const print = printer(cli, options)
  print.answer(made, () =>
    renderFacts([
      ['data', `${config.dataFolder} ${firstRun ? 'made' : 'was there already; nothing was changed'}`],
      ...(rootKeyFile === null ? [] : [['root key', `${rootKeyFile}: move it to a safe place`] as const]),
    ]),
  )
  print.note(`next: muster plane --data ${config.dataFolder}`)
}

const initialise = async (options: GlobalOptions, env: Cli['env']) => {
  let config: PlaneConfig | undefined
  try {
    config = planeConfig(options, env)
    return { config, ...(await initialisePlane(config, openLog(config.logLevel, 'plane'))) }
  } catch (error) {
    throw planeTrouble(error, config === undefined ? {} : { config })
  }
}
