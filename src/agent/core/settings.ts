// Every setting of `muster agent run`: what it takes, what it means and when to change it. docs/SETTINGS.md is made from this.

import { keyTypes } from '#domain/core/profile.ts'
import type { Values } from '#platform/given-settings.ts'
import { logSettings } from '#platform/log-settings.ts'
import { choiceSetting, listSetting, pathSetting, textSetting, type Setting } from '#platform/setting.ts'
import { parseDuration } from '#wire/core/duration.ts'
import { nodeIdShape } from '#wire/core/shapes.ts'

export const usualAgentFile = '/etc/muster/agent-run.toml'
const defaultJoinFile = '/etc/muster/join'
export const defaultStateFolder = '/var/lib/muster-agent'

/** Metrics are served on loopback only: every host on the network could read them otherwise. */
const loopback = (text: string): { readonly host: string; readonly port: number } | null => {
  const [, host, port] = /^(127(?:\.\d{1,3}){3}|\[::1\]|localhost):(\d{1,5})$/.exec(text) ?? []
  if (host === undefined || port === undefined || Number(port) > 65_535) return null
  return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) }
}

const longestEveryMs = 24 * 86_400_000

const every =
  (shortestMs: number) =>
  (text: string): number | null => {
    const ms = parseDuration(text)
    return ms === null || ms < shortestMs || ms > longestEveryMs ? null : ms
  }

/** As long as the kernel takes, and nothing that could be read as an option. */
const interfaceShape = /^[A-Za-z][A-Za-z0-9_.-]{0,14}$/

const matching =
  (shape: RegExp) =>
  (text: string): string | null =>
    shape.test(text) ? text : null

export const agentSettings = {
  state: pathSetting(defaultStateFolder, {
    value: 'folder',
    variable: 'MUSTER_AGENT_STATE',
    standIn: 'STATE_DIRECTORY',
    emptyIsNone: true,
    meaning: 'Where keys and certificates are kept',
    change:
      'For a second agent on one machine, or one that an ordinary user runs. systemd names the folder of its unit in `STATE_DIRECTORY`, which is used where nothing else names one.',
  }),
  joinFile: pathSetting(defaultJoinFile, {
    value: 'file',
    variable: 'MUSTER_JOIN_FILE',
    meaning: 'File with the join string (- for standard input); deleted after use',
    change:
      'Where provisioning puts it elsewhere. The join string itself can be in the variable `MUSTER_JOIN`, which goes before this variable and the file; it is never in a settings file.',
  }),
  joinMethod: choiceSetting(['token', 'hardware'], null, {
    value: 'method',
    variable: 'MUSTER_JOIN_METHOD',
    meaning: 'How to prove this machine',
    unset: 'as the join string says',
    change: 'Seldom: a join string without a secret means `hardware`, any other `token`.',
  }),
  keyType: choiceSetting(keyTypes, 'p256', {
    value: 'type',
    variable: 'MUSTER_KEY_TYPE',
    meaning: 'Kind of key to make, unless the profile allows others only',
    change: 'Where a policy asks for another, and `certificate.keyTypes` of the profile allows it.',
  }),
  keyStorage: choiceSetting(['file', 'memory'], null, {
    value: 'kind',
    variable: 'MUSTER_KEY_STORAGE',
    meaning: 'Where keys are kept',
    unset: 'file, and memory for machines that join by their hardware',
    change: 'To `memory` on machines without a disk: no key is written, and every start is a new enrollment.',
  }),
  nodeId: textSetting(matching(new RegExp(nodeIdShape)), null, {
    value: 'id',
    // A bundle of `muster node bundle` sets MUSTER_NODE_ID for people who read it. Agents of 0.4 ignore it.
    variable: null,
    takes: 'lower-case letters, digits, dots, dashes and underscores, at most 63',
    meaning: 'The name to ask for, with a token of the domain',
    unset: 'as the token says',
    change: 'With a token of the domain, which names no node.',
  }),
  hardwareFile: pathSetting(null, {
    value: 'file',
    variable: 'MUSTER_HARDWARE_FILE',
    emptyIsNone: true,
    meaning: 'Read the hardware identity from here',
    unset: 'the system is asked',
    change:
      'Where the agent is not root: serial numbers are for root only, who writes them with `muster agent read-hardware --out FILE`.',
  }),
  recovery: choiceSetting(['key', 'bearer', 'none'], null, {
    value: 'by',
    variable: 'MUSTER_RECOVERY',
    meaning: 'What to come back with after an expiry',
    unset: 'key, and none with keys in memory',
    change:
      'To `none` where a machine is to need an operator after every outage; to `bearer` where a token that changes with every certificate is wanted in place of a key. With keys in memory only `none` is possible.',
  }),
  staticCertificate: pathSetting(null, {
    value: 'file',
    variable: 'MUSTER_STATIC_CERTIFICATE',
    emptyIsNone: true,
    meaning: 'From the image: shown to the network at enrollment, never an identity',
    change: 'Where a network in front of the plane asks for a certificate. Needs `static_key`.',
  }),
  staticKey: pathSetting(null, {
    value: 'file',
    variable: 'MUSTER_STATIC_KEY',
    emptyIsNone: true,
    meaning: 'The key of that certificate',
    change: 'With `static_certificate`.',
  }),
  metricsListen: textSetting(loopback, null, {
    value: 'address',
    variable: 'MUSTER_METRICS_LISTEN',
    takes: 'a loopback address and a port: 127.0.0.1:9464',
    meaning: 'Show metrics on this loopback address',
    unset: 'nowhere',
    change: 'Where a collector runs on the machine itself.',
  }),
  reportEvery: textSetting(every(50), '60s', {
    value: 'time',
    variable: 'MUSTER_REPORT_EVERY',
    takes: 'a duration between 50ms and 24d',
    meaning: 'How often to report to the plane',
    change: 'Longer in very large fleets. Changes are reported at once in any case.',
  }),
  rehearseEvery: textSetting(every(1_000), null, {
    value: 'time',
    variable: 'MUSTER_REHEARSE_EVERY',
    takes: 'a duration between 1s and 24d',
    meaning: 'How often to rehearse the recovery, instead of what the profile says',
    unset: 'as the profile says',
    change: 'For tests; else set `recovery.rehearseEveryMs` of the profile.',
  }),
  wireguard: textSetting(matching(interfaceShape), null, {
    value: 'interface',
    variable: 'MUSTER_WIREGUARD',
    emptyIsNone: true,
    takes: 'the name of an interface, such as muster0',
    meaning: 'Take part in the WireGuard network with an interface of this name, made by the kernel or by wireguard-go',
    unset: 'it takes no part',
    change: 'On nodes whose profile has `wireguard.mode` offered or required.',
  }),
  wireguardEndpoint: listSetting((text) => text, null, {
    value: 'address...',
    variable: 'MUSTER_WIREGUARD_ENDPOINT',
    emptyIsNone: true,
    takes: 'an IPv4 and an IPv6 address at most, with one port for both',
    meaning: 'ADDRESS[:PORT] where other nodes reach it, IPv4 and IPv6 once each',
    unset: 'no node connects to it first',
    change: 'With `wireguard`, on nodes that others can reach.',
  }),
  publish: pathSetting(null, {
    value: 'folder',
    variable: 'MUSTER_AGENT_PUBLISH',
    emptyIsNone: true,
    meaning: 'Write the outputs of this node below a folder of its own user, without a helper',
    unset: 'nowhere',
    change: 'Where programs of the same user need certificates, and there is no helper.',
  }),
  helperSocket: pathSetting(null, {
    value: 'path',
    variable: 'MUSTER_HELPER_SOCKET',
    emptyIsNone: true,
    meaning: 'Where a helper is reached',
    unset: '/run/muster-agent-helper/socket',
    change: 'Where the helper was started by hand. Services then wait until it answers.',
  }),
  agentToml: pathSetting(null, {
    value: 'file',
    variable: 'MUSTER_AGENT_TOML',
    emptyIsNone: true,
    meaning: 'The bound that the host sets for its agent; names what may be reloaded',
    unset: '/etc/muster/agent.toml',
    change: 'Where the agent was started by hand, with a bound of its own.',
  }),
  ...logSettings,
}

export type AgentValues = Values<typeof agentSettings>

/** As they come from the command line. */
export type AgentOptions = {
  readonly [K in keyof typeof agentSettings]?:
    ((typeof agentSettings)[K] extends Setting<readonly string[]> ? readonly string[] : string) | undefined
}
