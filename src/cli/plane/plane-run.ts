// `muster plane`: runs one, or several on the same ports.

import { planeConfig, type PlaneConfig } from '#plane/config/config.ts'
import { runPlane, type PlaneReady } from '#plane/main.ts'
import { inputEnded, stopSignal } from '#platform/signals.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { isDefaultData, planeBanner, planeReadyBody } from './plane-banner.ts'
import { planeTrouble } from './plane-trouble.ts'
import { printer } from '#cli/kit/print.ts'

/** Returns when the plane has been asked to stop and has stopped. */
export const plane = async (cli: Cli, options: GlobalOptions): Promise<void> => {
  const isDefault = isDefaultData(options.data ?? cli.env['MUSTER_DATA'])
  let config: PlaneConfig | undefined
  const onReady = (ready: PlaneReady): void => {
    const body = planeReadyBody(ready)
    printer(cli, options).item(body, () =>
      planeBanner(body, cli.program, { isDefault, shared: config?.store.kind === 'postgres' }),
    )
  }
  try {
    config = planeConfig(options, cli.env)
    if (config.replicas > 1) {
      const { runReplicas } = await import('./plane-replicas.ts')
      return await runReplicas(cli, options, config)
    }
    // A replica ends with its parent, also when the parent is killed.
    const stop = config.replica === null ? stopSignal() : AbortSignal.any([stopSignal(), inputEnded()])
    await runPlane(config, onReady, stop)
  } catch (error) {
    throw planeTrouble(error, config === undefined ? {} : { config })
  }
}
