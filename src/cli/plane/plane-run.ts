// `muster plane`: runs one, or several on the same ports.

import { readGivenConfig, usableConfig, type PlaneConfig } from '#plane/config/config.ts'
import { runPlane, type PlaneReady } from '#plane/main.ts'
import { inputEnded, stopSignal } from '#platform/signals.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { isDefaultData, planeBanner, planeReadyBody } from './plane-banner.ts'
import { planeTrouble } from './plane-trouble.ts'
import { printer } from '#cli/kit/print.ts'

type PlaneOptions = GlobalOptions & { readonly checkConfig?: boolean }

/** Returns when the plane has been asked to stop and has stopped. */
export const plane = async (cli: Cli, options: PlaneOptions): Promise<void> => {
  if (options.checkConfig === true) {
    const { checkPlane } = await import('./plane-check.ts')
    return checkPlane(cli, options)
  }
  const given = readGivenConfig(options, cli.env)
  const { values } = given
  const file = given.file?.file ?? null
  const isDefault = isDefaultData(values.data)
  let config: PlaneConfig | undefined
  const onReady = (ready: PlaneReady): void => {
    const body = planeReadyBody(ready)
    printer(cli, options).item(body, () =>
      planeBanner(body, cli.program, { isDefault, shared: config?.store.kind === 'postgres', file }),
    )
  }
  try {
    config = usableConfig(given)
    if (config.replicas > 1) {
      const { runReplicas } = await import('./plane-replicas.ts')
      return await runReplicas(cli, options, config, given)
    }
    // A replica ends with its parent, also when the parent is killed.
    const stop = config.replica === null ? stopSignal() : AbortSignal.any([stopSignal(), inputEnded()])
    await runPlane(config, onReady, stop)
  } catch (error) {
    throw planeTrouble(error, config === undefined ? {} : { config, file })
  }
}
