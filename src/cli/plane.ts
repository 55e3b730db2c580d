import { planeConfig } from '#plane/config.ts'
import { runPlane, type PlaneReady } from '#plane/main.ts'
import { stopSignal } from '#platform/stop-signal.ts'
import type { Cli, GlobalOptions } from './cli.ts'
import { isDefaultData, planeBanner, planeReadyBody } from './plane-banner.ts'
import { planeTrouble } from './plane-trouble.ts'
import { printer } from './print.ts'

/** Returns when the plane has been told to stop and has. */
export const plane = async (cli: Cli, options: GlobalOptions): Promise<void> => {
  const isDefault = isDefaultData(options.data ?? cli.env['MUSTER_DATA'])
  const onReady = (ready: PlaneReady): void =>
    printer(cli, options).item(planeReadyBody(ready), () => planeBanner(ready, cli.program, isDefault))
  try {
    await runPlane(planeConfig(options, cli.env), onReady, stopSignal())
  } catch (error) {
    throw planeTrouble(error)
  }
}
