// `muster plane`: its options.

import type { Command } from 'commander'
import { planeSettings, usualPlaneFile } from '#plane/config/settings.ts'
import type { Cli } from '#cli/kit/cli.ts'
import { configOption, settingOptions } from '#cli/kit/setting-options.ts'
import { documented, loads } from '#cli/kit/verb.ts'

export const declarePlane = (plane: Command, cli: Cli): void => {
  planeOptions(
    documented(plane, [
      ['muster plane', 'on ./data, https://localhost:8443 for nodes, http://127.0.0.1:8440 for operators'],
      ['muster plane --data /srv/muster --node-listen 0.0.0.0:8443 --server-name muster.example.org', ''],
      [
        'muster plane --data ./second --node-listen 127.0.0.1:0 --recovery-listen 127.0.0.1:0 --operator-listen 127.0.0.1:0 --status-listen 127.0.0.1:0',
        'beside another one',
      ],
      [
        'MUSTER_STORE_FILE=/etc/muster/store muster plane --store postgres --replicas 4 --seal-key /etc/muster/seal.key',
        'four processes on one port set, over PostgreSQL',
      ],
      ['muster plane --config ./plane.toml --check-config', 'what is set, by whom, and what is wrong with it'],
    ]),
  )
  settingOptions(plane, { replicas: planeSettings.replicas })
  plane.option('--check-config', 'say what is set and what is wrong with it, and start nothing')
  loads(cli, plane, async () => (await import('./plane-run.ts')).plane)
}

/** Shared with `ca init`, which makes what `plane` would. */
export const planeOptions = (command: Command): Command =>
  settingOptions(planeConfigOption(command), planeSettings, ['replicas'])

/** Of commands that look for the data folder, the store and its keys as `plane` does. */
export const planeConfigOption = (command: Command): Command => configOption(command, 'MUSTER_CONFIG', usualPlaneFile)
