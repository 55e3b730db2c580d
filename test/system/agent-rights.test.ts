// The helper as a process: in its unit, under a systemd of the test's own; under the restrictions of that unit as far as they can be
// had without systemd; and started by hand by an ordinary user.
//
// The first needs a machine that lets a test make namespaces and control groups. What it does not have are limits of memory and
// tasks, where the controllers for them are not at hand.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { HelperRefusal, openHelperClient } from '#agent/helper/client.ts'
import { defaultHelperState } from '#agent/helper/written-lists.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { sha256Hex } from '#platform/bytes.ts'
import { systemClock } from '#platform/clock.ts'
import { systemTimers } from '#platform/timers.ts'
import { filesIn, hostOfPrograms } from '../fakes/host-of-programs.ts'
import { taskAuthority } from '../fakes/signed-tasks.ts'
import { idOf } from '../fakes/tasked-host.ts'
import { peer, withPeer } from '../peers/peer.ts'
import { musterCommand, startChild, startedCommand } from '../process/child.ts'
import { cleanup } from '../process/cleanup.ts'
import { overlayStatement, serviceNamed, shown, signedCheck, signedService } from '../fakes/signed-overlays.ts'
import { eventually } from '../process/eventually.ts'
import { musterHere } from '../process/muster-here.ts'
import { startSmallSystemd } from '../process/small-systemd.ts'
import { unprivilegedUser } from '../process/process-tree.ts'
import { tempFolder } from '../process/temp-folder.ts'

const unit = fs.readFileSync(
  path.join(import.meta.dirname, '../../packaging/systemd/muster-agent-helper.service'),
  'utf8',
)
const agentUnit = fs.readFileSync(
  path.join(import.meta.dirname, '../../packaging/systemd/muster-agent.service'),
  'utf8',
)
const socketUnit = path.join(import.meta.dirname, '../../packaging/systemd/muster-agent-helper.socket')
const setting = (name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] ?? ''

/** Its path leads through /proc into another file system, or is of another user. */
const noFault = (): null => null

test('in its unit it does what agent.toml allows, and what it runs for the host are units with rights of their own', async (t) => {
  if (withPeer(t, 'systemd') === null || withPeer(t, 'dbus-daemon') === null) return
  const host = hostOfPrograms(t, systemClock.nowMs())
  fs.mkdirSync(path.join(host.folder, 'other'))
  host.allow(`owners = ["nobody"]
[[outputs]]
directory = "/mnt/host/other"
[reloads.unit]
unit = "program.service"
[reloads.hangs]
unit = "hanging.service"
within = "1s"
[reloads.failing]
command = ["/bin/sh", "-c", "echo no such site >&2; exit 3"]
[reloads.hanging]
command = ["/bin/sleep", "600"]
within = "1s"
[services.app]
executable = "/bin/sleep"
user = "nobody"
arguments = "any"
environment = ["PASSWORD"]
[checks.who]
executable = "/usr/bin/id"
user = "nobody"
[tasks]
statement_keys = "/mnt/host/statement-keys.pem"
allow = ["run", "service", "fetch-file", "reboot"]
[tasks.run.who]
executable = "/usr/bin/id"
user = "nobody"
[tasks.run.hang]
executable = "/bin/sh"
user = "nobody"
arguments = ["-c", "setsid sleep 603 & sleep 604"]
within = "1s"
[tasks.services.program]
unit = "program.service"
actions = ["reload"]
[[tasks.files]]
directory = "/mnt/host/tls"
owner = "nobody"
`)
  const authority = taskAuthority()
  fs.writeFileSync(path.join(host.folder, 'statement-keys.pem'), authority.pem, { mode: 0o644 })
  // As an agent leaves what it has fetched.
  const ofAgent = path.join(host.folder, 'agent')
  fs.mkdirSync(ofAgent, { mode: 0o711 })
  fs.writeFileSync(path.join(ofAgent, 'fetched'), 'weights', { mode: 0o644 })
  fs.writeFileSync(host.agentToml, fs.readFileSync(host.agentToml, 'utf8').replaceAll(host.folder, '/mnt/host'))
  const here = (text: string): string =>
    text
      .replaceAll('/usr/bin/muster', '/mnt/muster/muster')
      .replaceAll('/etc/muster/', '/mnt/host/')
      .replace('SocketUser=muster-agent', 'SocketUser=daemon')
      .replace('--agent-user muster-agent', '--agent-user daemon')
  fs.writeFileSync(path.join(host.folder, 'ask.js'), askWhoMayOpen, { mode: 0o644 })
  fs.chmodSync(host.folder, 0o755)
  const { root } = await startSmallSystemd(t, {
    host: host.folder,
    start: [
      ...['muster-agent-helper.socket', 'program.service', 'hanging.service', 'agent.service', 'stranger.service'],
    ],
    units: {
      'agent.service': asker('daemon'),
      'stranger.service': asker('nobody'),
      'muster-agent-helper.service': here(unit),
      'muster-agent-helper.socket': here(fs.readFileSync(socketUnit, 'utf8')),
      'muster-agent-helper.service.d/host.conf': '[Service]\nReadWritePaths=-/mnt/host/tls\n',
      // Reached, and nothing happens: systemd has no unit here that restarts anything.
      'reboot.target': '[Unit]\nDefaultDependencies=no\n',
      'program.service': '[Unit]\nDefaultDependencies=no\n[Service]\nExecStart=/bin/sleep 600\nExecReload=/bin/true\n',
      'hanging.service': `[Unit]\nDefaultDependencies=no\n[Service]\nExecStart=/bin/sleep 600\nExecReload=/bin/sleep 601\n`,
    },
  })
  // The copy of the host's folder is all of root's.
  for (const place of ['agent', 'agent/fetched']) fs.chownSync(path.join(root, 'mnt/host', place), 1, 1)
  const socket = `${root}/run/muster-agent-helper/socket`
  // systemd makes it for root, and gives it away once it listens.
  await eventually('the socket to be for the agent', () => fs.statSync(socket).uid === 1)
  assert.equal(fs.statSync(socket).mode & 0o777, 0o600)
  const client = openHelperClient(systemTimers, socket, noFault)
  cleanup(t, () => client.close())
  assert.equal((await client.ask('hello', {})).fault, null)

  const { place } = await client.ask('output.write', host.request({ files: filesIn('/mnt/host/tls') }))
  assert.equal(fs.statSync(path.join(root, place, 'key.pem')).uid, 65534)
  const elsewhere = host.request({ files: filesIn('/mnt/host/other') })
  await assert.rejects(client.ask('output.write', elsewhere), { code: 'NOT_DONE', message: /EROFS/ })
  const record = fs.statSync(`${root}${defaultHelperState}/lists.json`)
  assert.deepEqual([record.uid, record.mode & 0o777], [0, 0o600])

  await client.ask('reload', { name: 'unit' })
  await assert.rejects(client.ask('reload', { name: 'failing' }), { message: /exit code 3 \(no such site\)/ })
  await assert.rejects(client.ask('reload', { name: 'hanging' }), { code: 'TIMED_OUT' })
  await assert.rejects(client.ask('reload', { name: 'hangs' }), { code: 'TIMED_OUT' })
  await eventually('the reload of the unit to be gone, and the unit to be there', () => {
    const commands = commandsIn(root)
    return !commands.includes('/bin/sleep 601') && commands.filter((one) => one === '/bin/sleep 600').length === 2
  })
  await assert.rejects(client.ask('check.run', { name: 'who', arguments: [] }), { code: 'STATEMENT_REFUSED' })
  const environment = { PASSWORD: 'say "$5" \\ `x`' }
  const terms = { user: null, environment, working_directory: null, restart: 'always' } as const
  const noLimits = { memory_bytes: null, cpus: null, open_files: null }
  const app = serviceNamed('app', { command: ['/bin/sleep', '602'], terms: { ...terms, ...noLimits } })
  const whoIs = { name: 'who', command: ['/usr/bin/id'] }
  const { nonce: newest } = await client.ask('overlay.nonce', {})
  const named = { nonce: newest, services: [signedService(app)], checks: [signedCheck(whoIs)] }
  await client.ask('overlay.take', { statement: overlayStatement(authority.statementKey, named) })
  const { line } = await client.ask('check.run', { name: 'who', arguments: [], overlay: shown(whoIs) })
  assert.match(line ?? '', /^uid=65534\(nobody\)/)

  const { nonce } = await client.ask('task.nonce', {})
  const statement = authority.statement({ nonce })
  const carryOut = async (change: Parameters<typeof authority.task>[0], file?: string) => {
    const task = authority.task(change)
    const request = { statement, task, ...(file === undefined ? {} : { file }) }
    assert.deepEqual(await client.ask('task.begin', request), { outcome: 'begun' })
    const look = async () => (await client.ask('task.look', {})).tasks.find(({ id }) => id === idOf(task))?.result
    const result = await eventually('the task to end', look, { withinMs: 30_000 })
    // The results of four are shown at once.
    await client.ask('task.forget', { id: idOf(task) })
    return result
  }
  const who = await carryOut({ parameters: { name: 'who' } })
  assert.match(who.output?.head ?? '', /^uid=65534\(nobody\)/, JSON.stringify(who))
  assert.equal((await carryOut({ parameters: { name: 'hang' } })).code, 'TIMED_OUT')
  await eventually('all of it to end', () => !commandsIn(root).some((one) => /sleep 60[34]/.test(one)))
  const reload = await carryOut({ type: 'service', parameters: { name: 'program', action: 'reload' } })
  assert.equal(reload.code, null, JSON.stringify(reload))
  const fetched = { sha256: sha256Hex('weights'), path: '/mnt/host/tls/weights' }
  const placed = await carryOut({ type: 'fetch-file', parameters: fetched }, '/mnt/host/agent/fetched')
  assert.equal(placed.code, null, JSON.stringify(placed))
  assert.equal(fs.statSync(path.join(root, fetched.path)).uid, 65534)

  const reboot = authority.task({ type: 'reboot', parameters: {} })
  assert.deepEqual(await client.ask('task.begin', { statement, task: reboot }), { outcome: 'begun' })
  const recordFile = path.join(root, defaultHelperState, 'tasks', `${idOf(reboot)}.json`)
  const begun = JSON.parse(fs.readFileSync(recordFile, 'utf8')) as { boot: string; result: unknown }
  assert.deepEqual([begun.result, /^systemd\/[0-9a-f]{64}$/.test(begun.boot)], [null, true], begun.boot)
  // What is written there is read by the helper after this one alone: to it, the machine has another boot.
  const otherBoot = `systemd/${'0'.repeat(64)}`
  fs.writeFileSync(recordFile, JSON.stringify({ ...begun, boot: otherBoot }))
  process.kill(pidIn(root, 'agent helper --config /mnt/host/agent.toml'), 'SIGKILL')
  const resultOf = async () => {
    const { tasks } = await client.ask('task.look', {})
    return tasks.find(({ id }) => id === idOf(reboot))?.result
  }
  const restarted = await eventually('the next helper to tell of it', () => resultOf().catch(() => null), {
    withinMs: 60_000,
  })
  const evidence = { boot_before: otherBoot, boot_after: begun.boot }
  assert.deepEqual([restarted.code, restarted.evidence], [null, evidence], JSON.stringify(restarted))

  const asked = { digest: '0123456789abcdef', arguments: [], environment: {}, working_directory: null }
  const start = { name: 'app', ...asked, restart: 'always' as const, overlay: shown(app) }
  assert.deepEqual(await client.ask('service.start', start), { outcome: 'started' })
  assert.deepEqual(await client.ask('service.start', start), { outcome: 'kept' })
  const { services } = await client.ask('service.status', {})
  assert.deepEqual(
    services.map(({ name, state }) => [name, state]),
    [['app', 'running']],
  )
  const environ = fs.readFileSync(`${root}/proc/${services[0]?.pid}/environ`, 'utf8').split('\0')
  assert.ok(environ.includes(`PASSWORD=${environment.PASSWORD}`), environ.join('\n'))
  const kept = `${root}/run/muster-agent-helper-services`
  assert.equal(fs.statSync(kept).mode & 0o777, 0o700)
  assert.equal(fs.readdirSync(kept).length, 1)
  await client.ask('service.stop', { name: 'app' })
  assert.deepEqual(fs.readdirSync(kept), [])
  assert.deepEqual(await client.ask('service.status', {}), { services: [] })

  const said = (user: string): string => fs.readFileSync(`${root}/run/${user}.log`, 'utf8').trim()
  assert.equal(await eventually('the agent to have asked', () => said('daemon')), 'open')
  assert.equal(await eventually('the other user to have asked', () => said('nobody')), 'EACCES')
})

/** As this process knows it: of the one process with these words that shares its pids with the systemd. */
const pidIn = (root: string, words: string): number => {
  const pidsOf = (folder: string): string => fs.readlinkSync(path.join(folder, 'ns', 'pid'))
  const its = pidsOf(path.dirname(root))
  const found = fs
    .readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const command = fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
        return command.includes(words) && pidsOf(`/proc/${pid}`) === its
      } catch {
        return false
      }
    })
  const [pid] = found
  assert.equal(found.length, 1, found.join())
  return Number(pid)
}

/** Of every process that it has. */
const commandsIn = (root: string): string[] =>
  fs
    .readdirSync(`${root}/proc`)
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        return [fs.readFileSync(`${root}/proc/${pid}/cmdline`, 'utf8').split('\0').filter(Boolean).join(' ')]
      } catch {
        return []
      }
    })

const askWhoMayOpen = `require('node:net').connect('/run/muster-agent-helper/socket')
  .on('connect', () => { console.log('open'); process.exit() })
  .on('error', ({ code }) => console.log(code))
`

/** In the sandbox of the agent's unit, without what is about its state, which has no place on this file system. */
const asker = (user: string): string =>
  agentUnit
    .split('\n')
    .filter(
      (line) => !/^(ExecStartPre|ExecReload|StateDirectory|Log|Restart|StartLimit|After|Wants|WantedBy)/.test(line),
    )
    .join('\n')
    .replace('[Unit]', '[Unit]\nDefaultDependencies=no\nAfter=muster-agent-helper.socket')
    .replace('Type=exec', `Type=exec\nStandardOutput=append:/run/${user}.log`)
    .replace(/^User=.*$/m, `User=${user}`)
    .replace(/^Group=.*$/m, '')
    .replace(/^ExecStart=.*$/m, 'ExecStart=/mnt/muster/node_modules/.bin/node /mnt/host/ask.js')

/** `CAP_CHOWN CAP_KILL` as setpriv takes it: -all,+chown,+kill */
const boundingSet = ['-all', ...setting('CapabilityBoundingSet').split(' ').filter(Boolean).map(asSetpriv)].join(',')

function asSetpriv(capability: string): string {
  return `+${capability.toLowerCase().replace(/^cap_/, '')}`
}

/** Mounts of its own: a host below /mnt, of which the listed directory alone can be written, and all else read-only. */
const sandbox = `set -e
mount --make-rprivate /
mount -t tmpfs -o mode=0755 tmpfs /mnt
cp -a "$1" /mnt/host
chown -R 0:0 /mnt/host
mkdir /mnt/run
mount --bind /mnt/host/tls /mnt/host/tls
mount --bind /mnt/run /mnt/run
for place in $(awk '{print $2}' /proc/mounts); do
  case "$place" in /mnt/host/tls|/mnt/run) ;; *) mount -o remount,bind,ro "$place" 2>/dev/null || true;; esac
done
mount -t proc -o subset=pid,hidepid=invisible proc /proc
ulimit -c 0
ulimit -n 1024
shift
exec setpriv --bounding-set="$1" --inh-caps=-all --no-new-privs -- "$2" agent helper --config /mnt/host/agent.toml --socket /mnt/run/socket --state /mnt/run/state --agent-user 65534
`

test('under the restrictions of its unit it writes what is allowed, for the user that is listed, and can do nothing else', async (t) => {
  if (withPeer(t, 'tmpfs') === null || withPeer(t, 'unshare') === null) return
  const host = hostOfPrograms(t, systemClock.nowMs())
  const seenInside = (text: string): string => text.replaceAll(host.folder, '/mnt/host')
  fs.mkdirSync(path.join(host.folder, 'other'))
  host.allow(`owners = ["65534"]\ngroups = ["65534"]\n[[outputs]]\ndirectory = "${host.folder}/other"\n`)
  fs.writeFileSync(host.agentToml, seenInside(fs.readFileSync(host.agentToml, 'utf8')))
  const child = startChild(t, 'sh', ['-c', sandbox, 'sh', host.folder, boundingSet, startedCommand], {
    wrapper: ['unshare', '--mount', '--net', '--ipc'],
  })
  const inside = `/proc/${child.pid}/root`
  await eventually('the helper to be ready', () => {
    assert.ok(child.running(), child.stderr())
    return child.stderr().includes('ready')
  })

  const status = fs.readFileSync(`/proc/${child.pid}/status`, 'utf8')
  const line = (name: string): string => new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(status)?.[1] ?? ''
  assert.equal(setting('CapabilityBoundingSet'), 'CAP_CHOWN')
  for (const set of ['CapPrm', 'CapEff', 'CapBnd']) assert.equal(BigInt(`0x${line(set)}`), 1n, set)
  assert.equal(line('NoNewPrivs'), '1')
  assert.deepEqual(networkOf(child.pid), ['lo'])
  const socket = fs.statSync(`${inside}/mnt/run/socket`)
  assert.deepEqual([socket.uid, socket.mode & 0o777], [65534, 0o600])

  const client = openHelperClient(systemTimers, `${inside}/mnt/run/socket`, noFault)
  cleanup(t, () => client.close())
  const hello = await client.ask('hello', {})
  assert.equal(hello.by_hand, false)
  assert.deepEqual(hello.verbs, ['hello', 'output.write', 'output.remove'])

  const request = host.request({ files: filesIn('/mnt/host/tls') })
  const { place } = await client.ask('output.write', request)
  const key = fs.statSync(path.join(inside, place, 'key.pem'))
  assert.deepEqual([key.uid, key.gid, key.mode & 0o7777], [65534, 65534, 0o640])
  assert.equal(fs.readFileSync(path.join(inside, place, 'key.pem'), 'utf8'), request.key)

  const elsewhere = host.request({ files: filesIn('/mnt/host/other') })
  await assert.rejects(client.ask('output.write', elsewhere), (error) => {
    assert.ok(error instanceof HelperRefusal)
    assert.equal(error.code, 'NOT_DONE')
    assert.match(error.message, /EROFS/, 'a directory that is listed and not in the unit')
    return true
  })
  await assert.rejects(client.ask('output.write', host.request({ files: filesIn('/etc') })), { code: 'NOT_ALLOWED' })
  assert.equal(fs.statSync(path.join(inside, place, 'crl.pem')).uid, 0)
  await client.ask('output.remove', { name: 'web', directory: '/mnt/host/tls' })
  assert.equal(fs.existsSync(path.join(inside, place)), false)
})

/** The interfaces in the network of a process; null: it is the network of this one. */
const networkOf = (pid: number): string[] | null => {
  const of = (id: number | 'self'): string => fs.readlinkSync(`/proc/${id}/ns/net`)
  if (of(pid) === of('self')) return null
  const lines = fs.readFileSync(`/proc/${pid}/net/dev`, 'utf8').split('\n')
  return lines.flatMap((line) => /^\s*(\S+):/.exec(line)?.[1] ?? [])
}

test('started by hand as an ordinary user it does what that user can, and no more', async (t) => {
  const user = unprivilegedUser()
  const folder = fs.realpathSync(tempFolder(t))
  const host = hostOfPrograms(t, systemClock.nowMs(), folder)
  const authority = taskAuthority()
  fs.writeFileSync(path.join(folder, 'keys.pem'), authority.pem, { mode: 0o644 })
  host.allow(`[[outputs]]
directory = "/etc"
[reloads.web]
command = ["/bin/true"]
[tasks]
statement_keys = "${folder}/keys.pem"
allow = ["run"]
[tasks.run.true]
executable = "/bin/true"
user = "${user.uid ?? process.getuid?.()}"
`)
  if (user.uid !== null && user.gid !== null) {
    for (const name of ['.', 'tls', 'agent.toml', 'roots.pem', 'keys.pem'])
      fs.chownSync(path.join(folder, name), user.uid, user.gid)
  }
  const socket = path.join(folder, 'run', 'socket')
  const args = ['agent', 'helper', '--config', host.agentToml, '--socket', socket]
  // The command of the tests is in a folder of the one who runs them.
  const command = user.uid === null ? startedCommand : musterCommand
  const child = startChild(t, command, args, { wrapper: user.wrapper, cwd: '/' })
  await eventually('the helper to be ready', () => {
    assert.ok(child.running(), child.stderr())
    return child.stderr().includes('ready')
  })
  const owner = user.uid ?? process.getuid?.()
  assert.deepEqual([fs.statSync(socket).uid, fs.statSync(socket).mode & 0o777], [owner, 0o600])
  const client = openHelperClient(systemTimers, socket, noFault)
  cleanup(t, () => client.close())
  const hello = await client.ask('hello', {})
  assert.equal(hello.by_hand, true)
  const { place } = await client.ask('output.write', host.request())
  assert.equal(fs.statSync(path.join(place, 'key.pem')).uid, owner)
  await assert.rejects(client.ask('output.write', host.request({ files: filesIn('/etc') })), (error) => {
    assert.ok(error instanceof HelperRefusal && error.code === 'NOT_DONE')
    assert.match(error.message, /EACCES/)
    return true
  })
  await client.ask('reload', { name: 'web' })
  const { nonce } = await client.ask('task.nonce', {})
  const task = authority.task({ parameters: { name: 'true' } })
  const begun = client.ask('task.begin', { statement: authority.statement({ nonce }), task })
  // The user of the tests may have been given control groups; nobody's helper has none, and then runs no program.
  const hasLimits = user.uid === null && 'path' in peer('limits')
  if (hasLimits) assert.deepEqual(await begun, { outcome: 'begun' })
  else await assert.rejects(begun, { code: 'TASK_REFUSED', message: /^NO_LIMITS: / })
  const ended = await child.stop()
  assert.equal(ended.code, 0)
  await assert.rejects(client.ask('hello', {}), { code: 'NO_HELPER' })
})

test('muster agent helper --check says what agent.toml allows and which place is wrong, and --print-unit names its directories', async (t) => {
  const host = hostOfPrograms(t, systemClock.nowMs())
  host.allow('[reloads.web]\nunit = "web.service"\n')
  // Root trusts no folder that others may write in, such as the one of this test.
  const isRoot = process.geteuid?.() === 0
  const checked = await musterHere(['agent', 'helper', '--check', '--config', host.agentToml])
  assert.equal(checked.code, isRoot ? exitCodes.misconfigured : exitCodes.ok, checked.stderr)
  if (isRoot) assert.match(checked.stderr, /error CONFIG_INVALID: \/\S+ can be written by other users/)
  else assert.match(checked.stdout, /^reloads   web$/m)
  host.allow('[reload.web]\n')
  const wrong = await musterHere(['agent', 'helper', '--print-unit', '--config', host.agentToml])
  assert.equal(wrong.code, exitCodes.misconfigured)
})
