// What a machine is given to start with (R-067): its name, the plane's address, the root's fingerprint and a token. All of
// it but the name is in the join string. As an environment file, as user data for cloud-init, or as a shell script.

import { parseJoinString } from '#wire/core/join-string.ts'
import { nodeIdShape } from '#wire/core/shapes.ts'
import { firmwareCommands, firmwareFiles, firmwareRestart, type FirmwareProfile } from './firmware.ts'

export type Bootstrap = {
  readonly nodeId: string
  readonly join: string
  /** How the agent gets there; null: it is on the machine already. */
  readonly agent: AgentSource | null
}

export type AgentSource = {
  /** An https URL, or a path on the machine. Not trusted: what comes from it has to have the digest. */
  readonly from: string
  /** Lower-case hex. */
  readonly sha256: string
}

/**
 * Null when it can be written into any of the formats. They quote it all the same; this check keeps characters with a meaning in
 * a shell, in YAML or in systemd out, also if the plane at that address is hostile.
 */
export const faultOfBootstrap = ({ nodeId, join, agent }: Bootstrap): string | null => {
  if (!new RegExp(nodeIdShape).test(nodeId)) return 'the name of the node is malformed'
  if (parseJoinString(join) === null || !/^[A-Za-z0-9:/.,_[\]-]+$/.test(join)) {
    return 'the join string holds characters that do not belong there'
  }
  if (agent === null) return null
  if (!/^[0-9a-f]{64}$/.test(agent.sha256)) return 'the digest of the agent is 64 hex digits'
  if (agent.from.startsWith('/')) {
    return /^(\/[\w.+@-]+)+$/.test(agent.from)
      ? null
      : 'the path of the agent holds characters that do not belong there'
  }
  const secure = URL.canParse(agent.from) && new URL(agent.from).protocol === 'https:'
  return secure && /^[\w:/.?&=%+@~-]+$/.test(agent.from) ? null : 'the address of the agent is an https URL or a path'
}

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

/** Of one that joins by its hardware there is nothing to keep secret. */
const secrecyOf = (join: string, care: string): string =>
  parseJoinString(join)?.secret === null ? 'Holds no secret.' : `Holds a token that works once: ${care}.`

const scriptPath = '/run/muster-install.sh'

/**
 * User data for cloud-init. JSON strings are YAML strings, so nothing in a value can become structure. `firmware`: what the machine
 * is set up with first.
 */
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
    `  - [sh, ${JSON.stringify(scriptPath)}]`,
    `  - [rm, "-f", ${JSON.stringify(scriptPath)}]`,
    ...(firmware === null ? [] : firmwareRestart(firmware)),
    '',
  ].join('\n')

const packagesOf = ({ packages }: FirmwareProfile): string[] =>
  packages.length === 0 ? [] : ['package_update: true', `packages: ${JSON.stringify(packages)}`]

const file = (path: string, content: string, permissions: string): string[] => [
  `  - path: ${JSON.stringify(path)}`,
  '    owner: "root:root"',
  `    permissions: ${JSON.stringify(permissions)}`,
  `    content: ${JSON.stringify(content)}`,
]

/** Files of the service, as they are in packaging/systemd. */
export type ServiceFiles = { readonly unit: string; readonly sysusers: string; readonly journald: string }

/**
 * A POSIX shell script that brings a machine in: puts the join string where the agent looks for it, installs the agent by
 * its digest, and starts the service. Safe to repeat. MUSTER_INSTALL_ROOT installs into an image instead.
 */
export const installScript = (bootstrap: Bootstrap, service: ServiceFiles): string =>
  [
    '#!/bin/sh',
    `# Muster: brings ${bootstrap.nodeId} in. ${secrecyOf(bootstrap.join, 'keep it 0600, delete it afterwards')}`,
    'set -eu',
    'umask 077',
    'root=${MUSTER_INSTALL_ROOT:-}',
    'say() { printf "muster: %s\\n" "$*" >&2; }',
    '[ -n "$root" ] || [ "$(id -u)" = 0 ] || { say "run this as root"; exit 77; }',
    '',
    ...(bootstrap.agent === null ? [] : installAgent(bootstrap.agent)),
    ...installService(service),
    '# The shell writes it itself: no other process sees it among its arguments.',
    'mkdir -p "$root/etc/muster"',
    `printf "%s\\n" ${quoted(bootstrap.join)} > "$root/etc/muster/join.new"`,
    'mv "$root/etc/muster/join.new" "$root/etc/muster/join"',
    '',
    'if [ -z "$root" ]; then',
    '  systemd-sysusers',
    '  systemctl daemon-reload',
    '  systemctl enable muster-agent',
    '  systemctl restart muster-agent',
    `  say ${quoted(`${bootstrap.nodeId} is joining; see: muster agent status`)}`,
    'else',
    `  say ${quoted(`${bootstrap.nodeId} joins when this image starts`)}`,
    'fi',
    '',
  ].join('\n')

const installAgent = ({ from, sha256 }: AgentSource): string[] => [
  'major=$(node --version 2>/dev/null | sed -n "s/^v\\([0-9]*\\)\\..*/\\1/p")',
  'if [ -z "$root" ] && [ "${major:-0}" -lt 24 ]; then',
  '  say "the agent needs Node 24 or newer, found ${major:-none}: install it, then run this again"; exit 69',
  'fi',
  'mkdir -p "$root/usr/bin"',
  'new=$(mktemp "$root/usr/bin/.muster.XXXXXX")',
  `trap 'rm -f "$new"' EXIT`,
  from.startsWith('/')
    ? `cp ${quoted(from)} "$new"`
    : `curl --proto "=https" --tlsv1.2 --fail --silent --show-error --max-time 300 --output "$new" ${quoted(from)}`,
  '# Where it came from is not trusted: only these bytes are installed.',
  `printf "%s  %s\\n" ${sha256} "$new" | sha256sum --check --status || { say "the agent has another digest than ${sha256}: nothing was installed"; exit 76; }`,
  'chmod 755 "$new"',
  'mv "$new" "$root/usr/bin/muster"',
  '',
]

const installService = ({ unit, sysusers, journald }: ServiceFiles): string[] => [
  'mkdir -p "$root/etc/systemd/system" "$root/usr/lib/sysusers.d"',
  ...writes('"$root/etc/systemd/system/muster-agent.service"', unit),
  ...writes('"$root/usr/lib/sysusers.d/muster-agent.conf"', sysusers),
  ...writes('"$root/etc/systemd/journald@muster-agent.conf"', journald),
  'chmod 644 "$root/etc/systemd/system/muster-agent.service" "$root/usr/lib/sysusers.d/muster-agent.conf" "$root/etc/systemd/journald@muster-agent.conf"',
  '',
]

const writes = (file: string, content: string): string[] => [`printf "%s" ${quoted(content)} > ${file}`]

/** Always quoted: a single quote is the only character that could end the quotation. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
