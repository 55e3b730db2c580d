import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { agentExitCodes } from '#agent/core/outcome.ts'
import { parseAgentToml } from '#agent/helper/agent-toml.ts'
import { unitAddition } from '#cli/agent/agent-privileged.ts'
import { defaultSocket } from '#agent/helper/verbs.ts'
import { defaultHelperState } from '#agent/helper/written-lists.ts'
import { withPeer } from '../peers/peer.ts'
import { tempFolder } from '../process/temp-folder.ts'

const folder = path.join(import.meta.dirname, '../../packaging/systemd')
const unit = fs.readFileSync(path.join(folder, 'muster-agent.service'), 'utf8')
const setting = (name: string, text = unit): string[] =>
  text
    .split('\n')
    .filter((line) => line.startsWith(`${name}=`))
    .map((line) => line.slice(name.length + 1))

test('systemd does not start an agent again that was refused for good or is not set up', () => {
  const prevented: number[] = setting('RestartPreventExitStatus').flatMap((codes) => codes.split(' ').map(Number))
  const { refused, revoked, misconfigured, untrusted } = agentExitCodes
  assert.deepEqual(new Set(prevented), new Set([refused, revoked, misconfigured]))
  assert.ok(!prevented.includes(untrusted), 'clocks and routes get repaired')
  assert.deepEqual(setting('Restart'), ['always'])
  assert.deepEqual(setting('StartLimitIntervalSec'), ['0'])
})

test('the agent runs without rights; only what comes before it is run by root', () => {
  assert.deepEqual(setting('User'), ['muster-agent'])
  assert.deepEqual(setting('CapabilityBoundingSet'), [''])
  assert.deepEqual(setting('NoNewPrivileges'), ['yes'])
  assert.ok(setting('ExecStart').every((command) => command.startsWith('/')))
  assert.ok(setting('ExecStartPre').every((command) => /^-?\+\//.test(command)))
})

test('root writes nothing into a folder of the agent, where a link could lead it elsewhere', () => {
  const [hardware = '', join = ''] = setting('ExecStartPre')
  const folder = /install -d -m 0750 -g muster-agent (\/run\/[^/ ]+) /.exec(hardware)?.[1] ?? ''
  assert.ok(hardware.includes(` --out ${folder}/`), 'root owns it, and no user but that of the agent can enter it')
  assert.match(join, /setpriv --reuid=muster-agent .* "[^"]*> \/var\/lib\/muster-agent\/join [^"]*"/)
  assert.deepEqual(setting('RuntimeDirectory'), [])
})

test('the unit carries no secret and needs none on its command line', () => {
  assert.doesNotMatch(unit, /enroll_|MUSTER_JOIN/)
})

test('a reload nudges the agent with the signal it takes', () => {
  assert.deepEqual(setting('ExecReload'), ['/bin/kill -USR2 $MAINPID'])
})

test('the journal of the agent has a namespace of its own with an explicit size', () => {
  const [namespace = ''] = setting('LogNamespace')
  const journald = fs.readFileSync(path.join(folder, `journald@${namespace}.conf`), 'utf8')
  assert.match(setting('SystemMaxUse', journald)[0] ?? '', /^\d+M$/)
  assert.match(setting('RuntimeMaxUse', journald)[0] ?? '', /^\d+M$/)
  assert.match(setting('LogRateLimitBurst')[0] ?? '', /^\d+$/)
})

test('WireGuard takes one right more, and only where it is asked for', () => {
  const added = fs.readFileSync(path.join(folder, 'muster-agent-wireguard.conf'), 'utf8')
  assert.deepEqual(setting('AmbientCapabilities', added), ['CAP_NET_ADMIN'])
  assert.deepEqual(setting('CapabilityBoundingSet', added), ['CAP_NET_ADMIN'])
  assert.deepEqual(setting('DeviceAllow', added), ['/dev/net/tun rw'])
  assert.deepEqual(setting('User', added), [])
})

test('the sockets of other WireGuard interfaces are in a folder that is not that of the agent', () => {
  const added = fs.readFileSync(path.join(folder, 'muster-agent-wireguard.conf'), 'utf8')
  const [own = ''] = setting('RuntimeDirectory', added)
  assert.notEqual(own, 'wireguard')
  assert.deepEqual(setting('BindPaths', added), [`/run/${own}:/run/wireguard`])
})

test('a service of an overlay that takes too much memory does not end the agent; more room for them is an addition', () => {
  assert.deepEqual(setting('OOMPolicy'), ['continue'])
  const added = fs.readFileSync(path.join(folder, 'muster-agent-services.conf'), 'utf8')
  assert.ok(Number(setting('TasksMax', added)[0]) > Number(setting('TasksMax')[0]))
  for (const name of ['User', 'CapabilityBoundingSet', 'NoNewPrivileges']) assert.deepEqual(setting(name, added), [])
})

const helperUnit = fs.readFileSync(path.join(folder, 'muster-agent-helper.service'), 'utf8')
const helperSocket = fs.readFileSync(path.join(folder, 'muster-agent-helper.socket'), 'utf8')

test('the helper is root with one right left, without a network, and writes nowhere until the host says where', () => {
  assert.deepEqual(setting('User', helperUnit), ['root'])
  assert.deepEqual(setting('CapabilityBoundingSet', helperUnit), ['CAP_CHOWN'])
  assert.deepEqual(setting('NoNewPrivileges', helperUnit), ['yes'])
  assert.deepEqual(setting('PrivateNetwork', helperUnit), ['yes'])
  assert.deepEqual(setting('RestrictAddressFamilies', helperUnit), ['AF_UNIX'])
  assert.deepEqual(setting('ProtectSystem', helperUnit), ['strict'])
  assert.deepEqual(setting('ReadWritePaths', helperUnit), [])
  assert.deepEqual(setting('StateDirectory', helperUnit), [path.basename(defaultHelperState)])
  const added = (text: string): string[] => {
    const toml = parseAgentToml(text)
    assert.ok(toml.kind === 'allowed')
    return setting('ReadWritePaths', unitAddition('/etc/muster/agent.toml', toml.toml))
  }
  const outputs = '[[outputs]]\ndirectory = "/etc/nginx/tls"\n[[outputs]]\ndirectory = "/etc/db/tls"\n'
  assert.deepEqual(added(outputs), ['-/etc/nginx/tls', '-/etc/db/tls'])
  const cleanup = 'directories = ["/var/crash"]\nolder_than = "1d"\nevidence = "/var/lib/cleaned"\n'
  const tasks = `[tasks]\nstate = "/srv/seen"\n[[tasks.files]]\ndirectory = "/srv/models"\n[tasks.cleanup.dumps]\n${cleanup}`
  assert.deepEqual(added(tasks), ['-/srv/seen', '-/srv/models', '-/var/crash', '-/var/lib/cleaned'])
})

test('the socket of the helper is for the user of the agent, at the place where the agent looks for it', () => {
  assert.deepEqual(setting('SocketUser', helperSocket), setting('User'))
  assert.deepEqual(setting('SocketMode', helperSocket), ['0600'])
  assert.deepEqual(setting('ListenStream', helperSocket), [defaultSocket])
  assert.match(setting('ExecStart', helperUnit)[0] ?? '', /--agent-user muster-agent$/)
  assert.deepEqual(setting('RestartPreventExitStatus', helperUnit), [String(agentExitCodes.misconfigured)])
})

test('systemd rates the exposure of both units as low', (t) => {
  const analyze = withPeer(t, 'systemd-analyze')
  if (analyze === null) return
  const here = tempFolder(t)
  for (const [name, text] of Object.entries({ 'muster-agent': unit, 'muster-agent-helper': helperUnit })) {
    const file = path.join(here, `${name}.service`)
    fs.writeFileSync(file, text.replaceAll('/usr/bin/muster', '/bin/true'))
    const rated: { stdout: string; stderr: string } = spawnSync(
      analyze,
      ['security', '--offline=true', '--no-pager', file],
      { encoding: 'utf8' },
    )
    const exposure: number = Number(/Overall exposure level for \S+: ([\d.]+)/.exec(rated.stdout)?.[1])
    assert.ok(exposure <= 1.5, `${name}: ${exposure}\n${rated.stderr}`)
  }
})

test('systemd finds nothing to complain about', (t) => {
  const analyze = withPeer(t, 'systemd-analyze')
  if (analyze === null) return
  // What is installed elsewhere is not looked for: the paths are checked where the package is.
  const here = tempFolder(t)
  const program = path.join(here, 'muster')
  fs.writeFileSync(program, '#!/bin/sh\n', { mode: 0o755 })
  const file = path.join(here, 'muster-agent.service')
  fs.writeFileSync(file, unit.replaceAll('/usr/bin/muster', program))
  const additions = path.join(here, 'muster-agent.service.d')
  fs.mkdirSync(additions)
  for (const name of ['wireguard', 'services']) {
    fs.copyFileSync(path.join(folder, `muster-agent-${name}.conf`), path.join(additions, `${name}.conf`))
  }
  const helper = path.join(here, 'muster-agent-helper.service')
  fs.writeFileSync(helper, helperUnit.replaceAll('/usr/bin/muster', program))
  const socket = path.join(here, 'muster-agent-helper.socket')
  fs.writeFileSync(socket, helperSocket)
  const checked = spawnSync(analyze, ['verify', '--man=no', file, helper, socket], { encoding: 'utf8' })
  const aboutUs = checked.stderr.split('\n').filter((line) => line.includes('muster-agent'))
  assert.deepEqual(aboutUs, [])
  assert.equal(checked.status, 0, checked.stderr)
})
