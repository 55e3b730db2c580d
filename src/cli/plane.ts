import { planeConfig } from '#plane/config.ts'
import { runPlane } from '#plane/main.ts'
import type { Cli, GlobalOptions } from './cli.ts'
import { planeBanner } from './plane-banner.ts'
import { printer } from './print.ts'

/** Returns when the plane has been told to stop and has. */
export const plane = (cli: Cli, options: GlobalOptions): Promise<void> =>
  runPlane(planeConfig(options, cli.env), (ready) =>
    printer(cli, options).item(ready, () => planeBanner(ready, cli.program)),
  )
