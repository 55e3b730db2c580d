// What `muster plane` says when it is ready.

import type { PlaneReady } from '#plane/main.ts'
import { defaultDataFolder } from './connection.ts'
import { shellWord } from './shell-word.ts'
import { renderFacts } from './table.ts'

/** For programs that start a plane: one line of JSON. */
export type PlaneReadyBody = {
  readonly domain: string
  readonly data: string
  readonly node_url: string
  readonly recovery_url: string
  readonly operator_url: string
  readonly socket: string
  readonly root_fingerprint: string
  readonly first_run: boolean
  readonly warnings: readonly string[]
}

export const planeReadyBody = (ready: PlaneReady): PlaneReadyBody => ({
  domain: ready.domain,
  data: ready.dataFolder,
  node_url: ready.nodeUrl,
  recovery_url: ready.recoveryUrl,
  operator_url: ready.operatorUrl,
  socket: ready.socketPath,
  root_fingerprint: ready.rootFingerprint,
  first_run: ready.firstRun,
  warnings: ready.warnings,
})

/** `isDefault`: commands find this data folder without being told. */
export const planeBanner = (ready: PlaneReady, program: string, isDefault: boolean): string[] => [
  ...renderFacts([
    ['domain', ready.domain],
    ['data', `${ready.dataFolder}${ready.firstRun ? ' (made now)' : ''}`],
    ['nodes', ready.nodeUrl],
    ['recovery', ready.recoveryUrl],
    ['operators', `${ready.operatorUrl} and ${ready.socketPath}`],
    ['root', `sha256:${ready.rootFingerprint}`],
    ...ready.warnings.map((warning) => ['warning', warning] as const),
  ]),
  '',
  'Enrol a first node, from another terminal:',
  '',
  ...(isDefault ? [] : [`    export MUSTER_DATA=${shellWord(ready.dataFolder)}`]),
  `    ${program} token create --node gpu-001 | ${program} agent run --state ./n1 --join-file -`,
  `    ${program} node list`,
  '',
]

export const isDefaultData = (data: string | undefined): boolean =>
  data === undefined || data === defaultDataFolder || data === 'data'
