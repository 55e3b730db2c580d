import { planeConfig } from '#plane/config.ts'
import { initialisePlane } from '#plane/foundation.ts'
import { openLog } from '#platform/log.ts'
import type { Cli, GlobalOptions } from './cli.ts'
import { printer } from './print.ts'
import { renderFacts } from './table.ts'

export const caInit = async (cli: Cli, options: GlobalOptions): Promise<void> => {
  const config = planeConfig(options, cli.env)
  const { firstRun, rootKeyFile } = await initialisePlane(config, openLog(config.logLevel, 'plane'))
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
