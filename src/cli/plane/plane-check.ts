// `muster plane --check-config`.

import { readGivenConfig, type PlaneConfig } from '#plane/config/config.ts'
import { planeSettings } from '#plane/config/settings.ts'
import { checkSetUp } from '#plane/foundation/check-set-up.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { showSettings } from '#cli/kit/show-settings.ts'

export const checkPlane = (cli: Cli, options: GlobalOptions): void => {
  const { config, values, problems, file } = readGivenConfig(options, cli.env)
  const { problems: faults, warnings } = config === null ? { problems: [], warnings: [] } : checkSetUp(config)
  const follows = config === null ? {} : followsFrom(config)
  showSettings(cli, options, { settings: planeSettings, values, follows, file, problems, faults, warnings })
}

const followsFrom = ({
  recoveryListen: { host, port },
  tlsThreads,
}: PlaneConfig): Readonly<Record<string, string>> => ({
  recoveryListen: `${host.includes(':') ? `[${host}]` : host}:${port}`,
  tlsThreads: String(tlsThreads),
})
