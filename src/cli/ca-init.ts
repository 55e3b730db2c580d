import { planeConfig } from '#plane/config.ts'
import { initialisePlane } from '#plane/initialise.ts'
import type { Cli, GlobalOptions } from './cli.ts'

export const caInit = async (cli: Cli, options: GlobalOptions): Promise<void> => {
  await initialisePlane(planeConfig(options, cli.env))
}
