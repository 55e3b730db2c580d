// What a machine is given to start with: its name, the plane's address, the root's fingerprint and a token. All of
// it but the name is in the join string. As an environment file, as user data for cloud-init, or as a shell script.

import { parseJoinString } from '#wire/core/join-string.ts'
import { nodeIdShape } from '#wire/core/shapes.ts'
import { agentDigestShape, type AgentArchitecture } from '#wire/enrollment/agent-api.ts'
import { firmwareCommands, firmwareFiles, firmwareRestart, type FirmwareProfile } from './firmware.ts'
import { installScript, secrecyOf, type ServiceFiles } from './install-script.ts'

export type Bootstrap = {
  readonly nodeId: string
  readonly join: string
  /** How the agent gets there; null: it is on the machine already. */
  readonly agent: AgentSource | null
  /** PEM. What root pins on the machine as well; left out: nothing. */
  readonly statementKeys?: readonly string[]
}

/** Where it comes from is not trusted: what comes has to have the digest (SHA-256, lower-case hex). */
export type AgentSource =
  /** Of the plane in the join string, with the token in it: the machine calls no other host. */
  | { readonly kind: 'plane'; readonly roots: readonly string[]; readonly builds: readonly AgentBuild[] }
  /** `from`: an https URL, or a path on the machine. */
  | { readonly kind: 'elsewhere'; readonly from: string; readonly sha256: string }

export type AgentBuild = { readonly architecture: AgentArchitecture; readonly url: string; readonly sha256: string }

/**
 * Null when it can be written into any of the formats. They quote it all the same; this check keeps characters with a meaning in
 * a shell, in YAML or in systemd out, also if the plane at that address is hostile.
 */
export const faultOfBootstrap = ({ nodeId, join, agent, statementKeys = [] }: Bootstrap): string | null => {
  if (!new RegExp(nodeIdShape).test(nodeId)) return 'the name of the node is malformed'
  const parsed = parseJoinString(join)
  if (parsed === null || !/^[A-Za-z0-9:/.,_[\]-]+$/.test(join)) {
    return 'the join string holds characters that do not belong there'
  }
  if (!statementKeys.every((key) => pemShape('PUBLIC KEY').test(key))) return 'the statement keys are no PEM'
  if (agent === null) return null
  return agent.kind === 'plane' ? faultOfPlaneAgent(agent, parsed.url) : faultOfOtherAgent(agent)
}

const isDigest = (text: string): boolean => new RegExp(agentDigestShape).test(text)
const pemShape = (label: 'CERTIFICATE' | 'PUBLIC KEY'): RegExp =>
  new RegExp(`^-----BEGIN ${label}-----\\n(?:[A-Za-z0-9+/=]{1,76}\\n){1,64}-----END ${label}-----\\n$`)

const faultOfPlaneAgent = (agent: Extract<AgentSource, { kind: 'plane' }>, planeUrl: string): string | null => {
  if (agent.roots.length === 0 || !agent.roots.every((root) => pemShape('CERTIFICATE').test(root)))
    return 'the roots are no PEM'
  for (const { url, sha256 } of agent.builds) {
    if (!isDigest(sha256)) return 'the digest of the agent is 64 hex digits'
    if (!isSecureUrl(url) || new URL(url).origin !== new URL(planeUrl).origin)
      return 'the agent is not at the address of the plane'
  }
  return null
}

const faultOfOtherAgent = ({ from, sha256 }: Extract<AgentSource, { kind: 'elsewhere' }>): string | null => {
  if (!isDigest(sha256)) return 'the digest of the agent is 64 hex digits'
  if (from.startsWith('/')) {
    return /^(\/[\w.+@-]+)+$/.test(from) ? null : 'the path of the agent holds characters that do not belong there'
  }
  return isSecureUrl(from) ? null : 'the address of the agent is an https URL or a path'
}

const isSecureUrl = (text: string): boolean =>
  URL.canParse(text) && new URL(text).protocol === 'https:' && /^[\w:/.?&=%+@~[\]-]+$/.test(text)

/** For `--join-file`, `EnvironmentFile=` and shells; to be kept 0600. The agent reads MUSTER_JOIN. */
export const envFile = ({ nodeId, join }: Bootstrap): string =>
  [...aboutEnvironment(nodeId, join), `MUSTER_NODE_ID=${nodeId}`, `MUSTER_JOIN=${join}`, ''].join('\n')

const aboutEnvironment = (nodeId: string, join: string): readonly string[] =>
  parseJoinString(join)?.secret === null
    ? [`# Muster: bootstrap of ${nodeId}. Holds no secret.`]
    : [
        `# Muster: bootstrap of ${nodeId}. Holds a token that works once: keep it 0600. The agent deletes it when it has kept its`,
        '# identity, given as --join-file or left at /etc/muster/join; from EnvironmentFile= only with MUSTER_JOIN_ENV_FILE=PATH.',
      ]

/** A restart does not remove it: a machine that could not join can be made to. cloud-init keeps the user data with the token, too. */
const scriptPath = '/var/lib/muster-install.sh'

/** The last command of a machine: its exit code is what cloud-init reports. */
const runAndRemove = (nodeId: string): string =>
  [
    `if sh ${scriptPath}; then rm -f ${scriptPath}; else code=$?`,
    `echo "muster: ${nodeId} has not joined (exit code $code); run it again: sh ${scriptPath}" >&2`,
    'exit "$code"; fi',
  ].join('; ')

/** User data for cloud-init. `firmware`: what the machine is set up with first. */
export const cloudInit = (
  bootstrap: Bootstrap,
  service: ServiceFiles,
  firmware: FirmwareProfile | null = null,
): string =>
  [
    '#cloud-config',
    `# Muster: bootstrap of ${bootstrap.nodeId}. ${secrecyOf(bootstrap.join, 'user data is seen by more than the machine')}`,
    ...(firmware === null ? [] : packagesOf(firmware)),
    'write_files:',
    ...(firmware === null ? [] : firmwareFiles(firmware)).flatMap((one) =>
      file(one.path, one.content, one.permissions),
    ),
    ...file(scriptPath, installScript(bootstrap, service), '0700'),
    'runcmd:',
    ...(firmware === null ? [] : firmwareCommands(firmware)).map((words) => `  - ${JSON.stringify(words)}`),
    `  - ${JSON.stringify(['sh', '-c', runAndRemove(bootstrap.nodeId)])}`,
    ...(firmware === null ? [] : firmwareRestart(firmware)),
    '',
  ].join('\n')

const packagesOf = ({ packages }: FirmwareProfile): string[] =>
  packages.length === 0 ? [] : ['package_update: true', `packages: ${JSON.stringify(packages)}`]

const file = (path: string, content: string, permissions: string): string[] => [
  `  - path: ${JSON.stringify(path)}`,
  '    owner: "root:root"',
  `    permissions: ${JSON.stringify(permissions)}`,
  ...yamlText('    content:', content),
]

/** Whole lines of characters that YAML takes as they are, the first of which shows how far all are indented. */
const blockShape = /^(?! )[\t\x20-\x7e]+(?:\n[\t\x20-\x7e]*)*[^\n]\n$/

/** As lines that a person can read; else as a JSON string, which is a YAML string. Nothing in it can become structure. */
const yamlText = (key: string, content: string): string[] =>
  blockShape.test(content)
    ? [
        `${key} |`,
        ...content
          .split('\n')
          .slice(0, -1)
          .map((line) => (line === '' ? '' : `      ${line}`)),
      ]
    : [`${key} ${JSON.stringify(content)}`]
