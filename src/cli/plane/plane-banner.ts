// What `muster plane` says when it is ready.

import type { PlaneReady } from '#plane/main.ts'
import { portOf } from '#cli/kit/local-address.ts'
import { leadsToItself } from '#wire/core/join-string.ts'
import { usualPlaneFile } from '#plane/config/settings.ts'
import type { Resolved } from '#platform/given-settings.ts'
import { defaultDataFolder } from '#cli/kit/connection.ts'
import { shellWord } from '#cli/kit/printable.ts'
import { renderFacts } from '#cli/kit/table.ts'

/** For programs that start a plane: one line of JSON. */
export type PlaneReadyBody = {
  readonly domain: string
  readonly data: string
  readonly node_url: string
  readonly recovery_url: string
  readonly operator_url: string
  /** Null: it has no such listener. */
  readonly status_url: string | null
  readonly socket: string
  readonly root_fingerprint: string
  readonly first_run: boolean
  readonly admin_key_here: boolean
  /** How many replicas share the ports. */
  readonly replicas: number
  readonly warnings: readonly string[]
}

export const planeReadyBody = (ready: PlaneReady): PlaneReadyBody => ({
  domain: ready.domain,
  data: ready.dataFolder,
  node_url: ready.nodeUrl,
  recovery_url: ready.recoveryUrl,
  operator_url: ready.operatorUrl,
  status_url: ready.statusUrl,
  socket: ready.socketPath,
  root_fingerprint: ready.rootFingerprint,
  first_run: ready.firstRun,
  admin_key_here: ready.adminKeyHere,
  replicas: 1,
  warnings: ready.warnings,
})

/**
 * `isDefault`: commands find this data folder without options. `shared`: other replicas may have made the domain. `file`: the
 * settings file that was read.
 */
export type BannerAbout = { readonly isDefault: boolean; readonly shared: boolean; readonly file: string | null }

export const planeBanner = (
  body: PlaneReadyBody,
  program: string,
  { isDefault, shared, file }: BannerAbout,
): string[] => [
  ...renderFacts([
    ...(file === null ? [] : [['settings', file] as const]),
    ['domain', body.domain],
    ['data', `${body.data}${body.first_run ? ' (made now)' : ''}`],
    ...(body.replicas === 1 ? [] : [['planes', `${body.replicas}, on the same ports`] as const]),
    ['nodes', body.node_url],
    ['recovery', body.recovery_url],
    ['operators', body.socket === '' ? body.operator_url : `${body.operator_url} and ${body.socket}`],
    ...(body.status_url === null ? [] : [['status', `${body.status_url} (OCSP, CRL)`] as const]),
    ['root', `sha256:${body.root_fingerprint}`],
    ...body.warnings.map((warning) => ['warning', warning] as const),
  ]),
  '',
  ...(body.admin_key_here
    ? []
    : [
        shared
          ? 'The domain was made by another plane, in whose data folder admin.key is. Commands here need a key, too:'
          : 'admin.key is not in this folder: put it back from a backup, or use another operator key: --key-file FILE, or',
        '',
        '    export MUSTER_KEY_FILE=FILE',
        '',
      ]),
  body.first_run ? 'Enroll a first node, from another terminal:' : 'From another terminal:',
  '',
  ...(isDefault ? [] : [`    export MUSTER_DATA=${shellWord(body.data)}`]),
  ...(body.first_run
    ? [`    ${program} token create --node gpu-001 | ${program} agent run --state ./n1 --join-file -`]
    : []),
  `    ${program} node list`,
  '',
  ...(leadsToItself(body.node_url) ? howOthersReach(body, program, isDefault, file) : []),
]

const howOthersReach = (
  { node_url: url, data }: PlaneReadyBody,
  program: string,
  isDefault: boolean,
  file: string | null,
): string[] => {
  const none = `No other machine can use ${url}. For one, stop this plane and`
  if (file !== null) {
    const lines = [`    node_listen = "0.0.0.0:${portOf(url)}"`, '    server_name = ["NAME"]']
    return [`${none} start it again with a name or address it has there in ${file}:`, '', ...lines, '']
  }
  const folder = isDefault ? '' : ` --data ${shellWord(data)}`
  const command = `    ${program} plane${folder} --node-listen 0.0.0.0:${portOf(url)} --server-name NAME`
  return [`${none} start it with a name or address it has there:`, '', command, '']
}

/** Whether commands find it without options. */
export const isDefaultData = ({ value, source }: Resolved<string>): boolean =>
  value === defaultDataFolder || value === 'data' || (source.from === 'file' && source.file === usualPlaneFile)
