// What `muster plane` says when it is ready.

import { defaultDataFolder } from './connection.ts'
import { renderFacts } from './table.ts'

export type PlaneReady = {
  readonly nodeUrl: string
  readonly operatorUrl: string
  readonly socketPath: string
  readonly rootFingerprint: string
  readonly domain: string
  readonly dataFolder: string
  readonly firstRun: boolean
  readonly warnings: readonly string[]
}

export const planeBanner = (ready: PlaneReady, program: string): string[] => [
  ...renderFacts([
    ['domain', ready.domain],
    ['data', `${ready.dataFolder}${ready.firstRun ? ' (made now)' : ''}`],
    ['nodes', ready.nodeUrl],
    ['operators', `${ready.operatorUrl} and ${ready.socketPath}`],
    ['root', `sha256:${ready.rootFingerprint}`],
    ...ready.warnings.map((warning) => ['warning', warning] as const),
  ]),
  '',
  'Enrol a first node, from another terminal:',
  '',
  ...(isDefault(ready.dataFolder) ? [] : [`    export MUSTER_DATA=${quoted(ready.dataFolder)}`]),
  `    ${program} token create --node gpu-001 | ${program} agent run --state ./n1 --join-file -`,
  `    ${program} node list`,
  '',
]

const isDefault = (folder: string): boolean => folder === defaultDataFolder || folder === 'data'

const quoted = (text: string): string => (/^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`)
