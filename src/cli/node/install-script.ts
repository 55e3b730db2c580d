// A POSIX shell script that brings a machine in: gets the agent by its digest, installs its service, and puts the join string where the
// agent looks for it. It can be run again, leaves /usr alone where that is read-only, and leaves an agent alone that came as a package.

import type { AgentSource, Bootstrap } from './bootstrap.ts'
import { parseJoinString } from '#wire/core/join-string.ts'

/** Files of the service, as they are in packaging/systemd. */
export type ServiceFiles = { readonly unit: string; readonly sysusers: string; readonly journald: string }

export const installScript = ({ nodeId, join, agent, statementKeys = [] }: Bootstrap, service: ServiceFiles): string =>
  [
    '#!/bin/sh',
    `# Muster: brings ${nodeId} in. ${secrecyOf(join, 'keep it 0600, delete it afterwards')}`,
    '# MUSTER_INSTALL_ROOT=DIR installs into an image; MUSTER_INSTALL_ARCH=aarch64, into one for such machines.',
    'set -eu',
    'umask 077',
    'root=${MUSTER_INSTALL_ROOT:-}',
    `join=${quoted(join)}`,
    `say() { printf 'muster: %s\\n' "$*" >&2; }`,
    'fail() { code=$1; shift; say "$*"; exit "$code"; }',
    '[ -n "$root" ] || [ "$(id -u)" = 0 ] || fail 77 "run this as root"',
    '(umask 022; mkdir -p "$root/etc/muster")',
    '',
    '# A unit in /etc would hide that of the package, also from its upgrades.',
    'if [ -e "$root/usr/lib/systemd/system/muster-agent.service" ]; then',
    '  say "the agent is installed as a package, and stays as it is"',
    'else',
    '',
    ...(agent === null ? agentInImage : installAgent(nodeId, agent)),
    ...installService(service),
    '',
    'fi',
    '',
    ...(statementKeys.length === 0 ? [] : pinKeys(statementKeys)),
    '# The shell writes it itself: no other process sees it among its arguments.',
    `printf '%s\\n' "$join" > "$root/etc/muster/join.new"`,
    'sync "$root/etc/muster/join.new"',
    'mv -f "$root/etc/muster/join.new" "$root/etc/muster/join"',
    'sync "$root/etc/muster"',
    '',
    'if [ -z "$root" ]; then',
    '  systemd-sysusers',
    '  systemctl daemon-reload',
    '  systemctl enable muster-agent',
    '  systemctl restart muster-agent',
    `  say ${quoted(`${nodeId} is joining; see: muster agent status`)}`,
    'else',
    '  # An image that has run before makes no users when it starts; one that has not makes this one then.',
    '  systemd-sysusers --root="$root" muster-agent.conf 2> /dev/null || true',
    `  say ${quoted(`${nodeId} joins when this image starts`)}`,
    'fi',
    '',
  ].join('\n')

/** Before the agent starts, and as `muster agent trust` would: in one step, for all to read. */
const pinKeys = (keys: readonly string[]): readonly string[] => [
  '# By these the helper verifies tasks, and starts services only as the plane has signed them.',
  'pinned="$root/etc/muster/statement-keys.pem"',
  ...writes('"$pinned.new"', keys.join('')),
  'chmod 644 "$pinned.new"',
  'sync "$pinned.new"',
  'mv -f "$pinned.new" "$pinned"',
  '',
]

/** Of one that joins by its hardware there is nothing to keep secret. */
export const secrecyOf = (join: string, care: string): string =>
  parseJoinString(join)?.secret === null ? 'Holds no secret.' : `Holds a token that works once: ${care}.`

const agentInImage: readonly string[] = [
  'for bin in /usr/bin /usr/local/bin /opt/muster/bin none; do [ ! -x "$root$bin/muster" ] || break; done',
  '[ "$bin" != none ] || fail 69 "there is no agent in $root/usr/bin: put muster into the image, or let the plane hand it out (muster plane --agents)"',
  '',
]

const installAgent = (nodeId: string, agent: AgentSource): readonly string[] => [
  '# Image-based hosts have /usr read-only: there the agent goes to /opt. Until its digest is checked, only root can open it.',
  'bin=/usr/bin',
  '(umask 022; mkdir -p "$root$bin" 2>/dev/null) || true',
  'work=$(mktemp -d "$root$bin/.muster.XXXXXX" 2>/dev/null) || {',
  '  bin=/opt/muster/bin',
  '  (umask 022; mkdir -p "$root$bin")',
  '  work=$(mktemp -d "$root$bin/.muster.XXXXXX")',
  '}',
  `trap 'rm -rf "$work"' EXIT`,
  `trap 'exit 1' HUP INT TERM`,
  '',
  ...(agent.kind === 'plane' ? chooseByArchitecture(agent) : [`sha256=${agent.sha256}`]),
  'digests="$root/etc/muster/agent.digests"',
  'is_installed() {',
  '  [ -x "$root$bin/muster" ] && [ -f "$digests" ] &&',
  '    [ "$(cat "$digests")" = "$sha256 $(sha256sum < "$root$bin/muster" | cut -c 1-64)" ]',
  '}',
  ...(agent.kind === 'plane' ? writes('"$work/roots.pem"', agent.roots.join('')) : []),
  'if ! is_installed; then',
  ...[...(agent.kind === 'plane' ? fetchFromPlane(nodeId) : fetchFromElsewhere(agent)), ...unpack].map(
    (line) => `  ${line}`,
  ),
  'fi',
  '',
]

const chooseByArchitecture = ({ builds }: Extract<AgentSource, { kind: 'plane' }>): readonly string[] => [
  'machine=${MUSTER_INSTALL_ARCH:-$(uname -m)}',
  'case $machine in',
  ...builds.flatMap(({ architecture, url, sha256 }) => [
    `${kernelNames[architecture]})`,
    `  url=${quoted(url)}`,
    `  sha256=${sha256}`,
    '  ;;',
  ]),
  '*) fail 69 "the plane hands out no agent for $machine: put it into the image, or give the plane one (muster plane --agents)" ;;',
  'esac',
]

/** As `uname -m` names them. */
const kernelNames = { x64: 'x86_64 | amd64', arm64: 'aarch64 | arm64' } as const

/** `--capath`: curl would trust the authorities of the system, too, and send them the token. There are none in that folder. */
const fetchFromPlane = (nodeId: string): readonly string[] => [
  'command -v curl > /dev/null || fail 69 "curl is needed to fetch the agent: install it, or put the agent into the image"',
  `printf 'Authorization: Bearer %s\\n' "\${join##*,}" > "$work/token"`,
  'waited=0 failed=0',
  'while :; do',
  '  : > "$work/answer"',
  `  if status=$(curl -q --noproxy '*' --proto =https --tlsv1.3 --cacert "$work/roots.pem" --capath "$work" --header "@$work/token" \\`,
  '    --fail --silent --show-error --connect-timeout 20 --speed-limit 1024 --speed-time 60 --continue-at - \\',
  `    --dump-header "$work/answer" --write-out '%{http_code}' --output "$work/agent" "$url"); then break; fi`,
  `  after=$(sed -n 's/^[Rr]etry-[Aa]fter: *\\([0-9]\\{1,4\\}\\).*/\\1/p' "$work/answer")`,
  '  case $status in',
  '  416) break ;;',
  `  401 | 403) fail 77 ${quoted(`the plane does not take the token: it was used or revoked, or has expired. Make a new bundle: muster node bundle ${nodeId}`)} ;;`,
  `  404) fail 69 ${quoted(`the plane no longer hands out this agent. Make a new bundle: muster node bundle ${nodeId}`)} ;;`,
  '  503) after=${after:-10} ;;',
  '  429)',
  `    [ -n "$after" ] || fail 69 ${quoted(`the plane hands out nothing more for this token. Make a new bundle: muster node bundle ${nodeId}`)}`,
  '    ;;',
  '  *)',
  '    failed=$((failed + 1)) after=$((failed * 4))',
  '    [ "$failed" -le 8 ] || fail 69 "the agent cannot be fetched from $url; the time here is $(date -u)"',
  '    ;;',
  '  esac',
  '  [ "$after" -ge 1 ] || after=1',
  '  waited=$((waited + after))',
  '  [ "$waited" -le 3600 ] || fail 69 "the plane has been busy for an hour: run this again later"',
  '  say "the agent is fetched again in $after s"',
  '  sleep "$after"',
  'done',
  'rm -f "$work/token"',
]

const fetchFromElsewhere = ({ from }: Extract<AgentSource, { kind: 'elsewhere' }>): readonly string[] => [
  from.startsWith('/')
    ? `cp ${quoted(from)} "$work/agent"`
    : `curl --proto =https --tlsv1.2 --fail --silent --show-error --max-time 300 --output "$work/agent" ${quoted(from)}`,
]

/** Nothing of it is run or unpacked before its digest is the one in here: where it came from is not trusted. */
const unpack: readonly string[] = [
  `printf '%s  %s\\n' "$sha256" "$work/agent" | sha256sum -c > /dev/null 2>&1 ||`,
  '  fail 76 "the agent has another digest than $sha256: nothing was installed"',
  'case $(od -An -tx1 -N2 "$work/agent") in',
  '*1f*8b*) gzip -dc < "$work/agent" > "$work/muster" ;;',
  '*) mv "$work/agent" "$work/muster" ;;',
  'esac',
  'chmod 755 "$work/muster"',
  'if [ -z "$root" ]; then',
  '  case $(head -c 64 "$work/muster" | tr -d "\\000" | head -n 1) in',
  '  "#!"*node*)',
  '    major=$(node --version 2> /dev/null | sed -n "s/^v\\([0-9]*\\)\\..*/\\1/p")',
  '    [ "${major:-0}" -ge 24 ] || fail 69 "the agent needs Node 24 or newer, found ${major:-none}: install it, then run this again"',
  '    ;;',
  '  esac',
  '  "$work/muster" --version > /dev/null || fail 69 "the agent does not run on this machine"',
  'fi',
  `printf '%s %s\\n' "$sha256" "$(sha256sum < "$work/muster" | cut -c 1-64)" > "$digests"`,
  '# Provisioning may run this once: a power cut must not leave half of it.',
  'sync "$work/muster"',
  'mv -f "$work/muster" "$root$bin/muster"',
]

const installService = ({ unit, sysusers, journald }: ServiceFiles): readonly string[] => [
  'units="$root/etc/systemd/system"',
  '(umask 022; mkdir -p "$units/multi-user.target.wants" "$root/etc/sysusers.d")',
  ...writes('"$units/muster-agent.service"', unit, 'sed "s|/usr/bin/muster|$bin/muster|"'),
  ...writes('"$root/etc/sysusers.d/muster-agent.conf"', sysusers),
  ...writes('"$root/etc/systemd/journald@muster-agent.conf"', journald),
  'chmod 644 "$units/muster-agent.service" "$root/etc/sysusers.d/muster-agent.conf" "$root/etc/systemd/journald@muster-agent.conf"',
  'ln -sf /etc/systemd/system/muster-agent.service "$units/multi-user.target.wants/muster-agent.service"',
  'sync "$root$bin" "$units/muster-agent.service" "$units" "$units/multi-user.target.wants"',
]

const endOfText = 'END_OF_FILE'

/** As a person would: line by line, where the text has lines and none of them ends it. */
const writes = (file: string, content: string, through = 'cat'): readonly string[] => {
  const lines = content.split('\n')
  if (lines.pop() !== '' || lines.includes(endOfText)) return [`printf '%s' ${quoted(content)} | ${through} > ${file}`]
  return [`${through} > ${file} <<'${endOfText}'`, ...lines, endOfText]
}

/** Always quoted: a single quote is the only character that could end the quotation. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
