// A hostile agent at the helper of a host that has pinned statement keys: nothing that an overlay names is started but what the plane
// has signed for this node last. The fields of the statement are flipped one by one beside the code (judge-overlay.test.ts).

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { generateKey, type PrivateKey } from '#pki/keys.ts'
import { toPem } from '#pki/pem.ts'
import { overlayFaultIn, type OverlayFault, type OverlayStatement } from '#wire/core/overlay-statement.ts'
import type { ServiceDefinition } from '#wire/fleet/overlay-definition.ts'
import type { Scope } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import { done, helpedHost, refusedWith, type HelpedHost, type Said } from '../fakes/helped-host.ts'
import { manualClock } from '../fakes/manual-clock.ts'
import { overlayStatement, serviceNamed, shown, signedCheck, signedService } from '../fakes/signed-overlays.ts'
import { taskAuthority, verifierOf, withField } from '../fakes/signed-tasks.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { programUser } from '../fakes/tasked-host.ts'

const asked = {
  digest: '0123456789abcdef',
  arguments: [],
  environment: {},
  working_directory: null,
  restart: 'never' as const,
}
const refusedFor = (said: Said, fault: OverlayFault): void => {
  refusedWith(said, 'STATEMENT_REFUSED', /./)
  if ('message' in said) assert.equal(overlayFaultIn(said.message), fault, said.message)
}

const app = serviceNamed('app', {
  command: ['/ignored', '--signed'],
  terms: {
    ...{ user: null, environment: { LEVEL: 'high' }, working_directory: null, restart: 'never' },
    ...{ memory_bytes: null, cpus: null, open_files: null },
  },
})
const disks = { name: 'disks', command: ['/ignored', 'signed'] }

/** A host whose programs write down with what they were started. */
const pinnedHost = (t: Scope) => {
  const clock = manualClock(Date.UTC(2027, 0, 1))
  const authority = taskAuthority(clock.nowMs())
  const host = helpedHost(t, undefined, clock)
  fs.chmodSync(host.folder, 0o755)
  const wrote = path.join(host.folder, 'wrote')
  fs.writeFileSync(wrote, '', { mode: 0o666 })
  fs.chmodSync(wrote, 0o666)
  const program = path.join(host.folder, 'program')
  fs.writeFileSync(program, `#!/bin/sh\necho "$* $LEVEL $MUSTER_NODE $MUSTER_VCLUSTER" >> ${wrote}\n`, { mode: 0o755 })
  fs.chmodSync(program, 0o755)
  const keys = path.join(host.folder, 'statement-keys.pem')
  fs.writeFileSync(keys, authority.pem, { mode: 0o644 })
  const programs = `
[services.app]
executable = "${program}"
user = "${programUser}"
arguments = "any"
environment = ["LEVEL"]
[checks.disks]
executable = "${program}"
user = "${programUser}"
arguments = "any"
`
  host.allow(`${programs}[tasks]\nstatement_keys = "${keys}"\n`)
  const runs = (): string[] => fs.readFileSync(wrote, 'utf8').split('\n').slice(0, -1)
  return {
    ...{ host, clock, authority, keys, programs, runs },
    /** The helper answers before a program that it has started has written anything. */
    written: (lines: number) => eventually(`${lines} lines to be written`, () => runs().length === lines),
  }
}

const nonceOf = async (host: HelpedHost): Promise<string> =>
  (done(await host.ask('overlay.nonce', {})) as { nonce: string }).nonce

const whole = { services: [signedService(app)], checks: [signedCheck(disks)] }

/** The helper gets a statement that answers its own nonce. */
const show = async (host: HelpedHost, key: PrivateKey, change: Partial<OverlayStatement> = {}): Promise<Said> =>
  host.ask('overlay.take', { statement: overlayStatement(key, { nonce: await nonceOf(host), ...whole, ...change }) })

const start = (host: HelpedHost, definition: ServiceDefinition = app): Promise<Said> =>
  host.ask('service.start', { name: 'app', ...asked, overlay: shown(definition) })
const check = (host: HelpedHost, definition = disks): Promise<Said> =>
  host.ask('check.run', { name: 'disks', arguments: ['unsigned'], overlay: shown(definition) })

test('without a statement nothing is started, and with one that what was signed, whatever else the agent asks for', async (t) => {
  const { host, authority, runs, written } = pinnedHost(t)
  refusedFor(await start(host), 'STATEMENT_MISSING')
  refusedFor(await check(host), 'STATEMENT_MISSING')
  // As an agent of 0.5 asks.
  refusedFor(await host.ask('service.start', { name: 'app', ...asked }), 'STATEMENT_MISSING')
  assert.deepEqual(done(await show(host, authority.statementKey)), { vcluster_revision: 7 })
  refusedFor(await host.ask('service.start', { name: 'app', ...asked }), 'STATEMENT_MISSING')
  refusedFor(await start(host, { ...app, command: ['/ignored', '--unsigned'] }), 'NOT_IN_STATEMENT')
  refusedFor(await start(host, { ...app, terms: null }), 'NOT_IN_STATEMENT')
  refusedFor(await check(host, { ...disks, command: ['/ignored', 'unsigned'] }), 'NOT_IN_STATEMENT')
  assert.deepEqual(runs(), [])
  const request = { ...asked, arguments: ['--unsigned'], environment: { LEVEL: 'low', MUSTER_NODE: 'gpu-002' } }
  done(await host.ask('service.start', { name: 'app', ...request, overlay: shown(app) }))
  await written(1)
  assert.deepEqual((done(await check(host)) as { exit_code: number }).exit_code, 0)
  assert.deepEqual(runs(), ['--signed high gpu-001 training', 'signed   '])
})

test('a statement that is forged, of another node, domain or epoch, or was not asked for is not taken', async (t) => {
  const { host, authority, runs } = pinnedHost(t)
  const { statementKey, signer } = authority
  refusedFor(await show(host, generateKey('ed25519')), 'STATEMENT_NOT_SIGNED')
  // A task signer speaks for tasks alone, in service or withdrawn.
  refusedFor(await show(host, signer), 'STATEMENT_NOT_SIGNED')
  refusedFor(await show(host, statementKey, { node: 'gpu-002' }), 'STATEMENT_OF_ANOTHER')
  refusedFor(await show(host, statementKey, { domain: 'other.test' }), 'STATEMENT_OF_ANOTHER')
  const nonce = await nonceOf(host)
  const empty = overlayStatement(statementKey, { nonce })
  refusedFor(
    await host.ask('overlay.take', { statement: withField(empty, 'services', whole.services) }),
    'STATEMENT_NOT_SIGNED',
  )
  const verifiers = authority.statement({ nonce })
  refusedFor(await host.ask('overlay.take', { statement: verifiers }), 'STATEMENT_NOT_SIGNED')
  const unasked = overlayStatement(statementKey, { nonce: 'nonce-of-another-helper', ...whole })
  refusedFor(await host.ask('overlay.take', { statement: unasked }), 'STATEMENT_REPLAYED')
  refusedWith(await host.ask('overlay.take', {} as never), 'BAD_REQUEST', /not a request/)
  refusedFor(await start(host), 'STATEMENT_MISSING')
  assert.deepEqual(runs(), [])
})

test('an earlier statement does not come back: not the same again, not one that was held back, not after a restart', async (t) => {
  const { host, authority, clock, runs } = pinnedHost(t)
  const { statementKey } = authority
  const first = overlayStatement(statementKey, { nonce: await nonceOf(host), ...whole })
  const heldBack = overlayStatement(statementKey, { nonce: await nonceOf(host), ...whole })
  const late = await nonceOf(host)
  done(await host.ask('overlay.take', { statement: first }))
  // The node is in no vCluster any more: a statement of nothing.
  const none = { vcluster: null, vcluster_revision: 0, services: [], checks: [] }
  done(await show(host, statementKey, none))
  for (const statement of [first, heldBack])
    refusedFor(await host.ask('overlay.take', { statement }), 'STATEMENT_REPLAYED')
  refusedFor(await start(host), 'NOT_IN_STATEMENT')
  refusedFor(await check(host), 'NOT_IN_STATEMENT')
  await host.close()
  const again = host.again()
  for (const statement of [first, heldBack, overlayStatement(statementKey, { nonce: late, ...whole })])
    refusedFor(await again.ask('overlay.take', { statement }), 'STATEMENT_REPLAYED')
  refusedFor(await start(again), 'NOT_IN_STATEMENT')
  const slow = await nonceOf(again)
  clock.advance(5 * 60_000 + 1)
  refusedFor(
    await again.ask('overlay.take', { statement: overlayStatement(statementKey, { nonce: slow, ...whole }) }),
    'STATEMENT_REPLAYED',
  )
  assert.deepEqual(runs(), [])
})

test('an epoch that is over does not come back, whether a task or an overlay has named the newer one', async (t) => {
  const { host, authority } = pinnedHost(t)
  const { statementKey } = authority
  done(await show(host, statementKey, { epoch: 4 }))
  refusedFor(await show(host, statementKey, { epoch: 3 }), 'STATEMENT_OLDER')
  const { nonce } = done(await host.ask('task.nonce', {})) as { nonce: string }
  const statement = authority.statement({ nonce, epoch: 5, verifiers: [verifierOf(authority.signer)] })
  refusedWith(await host.ask('task.begin', { statement, task: authority.task() }), 'TASK_REFUSED', /WRONG_EPOCH/)
  refusedFor(await show(host, statementKey, { epoch: 4 }), 'STATEMENT_OLDER')
  done(await show(host, statementKey, { epoch: 5 }))
})

test('what was taken holds over a restart and a clock that is years off, and until root pins another key', async (t) => {
  const { host, authority, clock, keys, runs, written } = pinnedHost(t)
  done(await show(host, authority.statementKey))
  await host.close()
  clock.set(Date.UTC(2001, 0, 1))
  const again = host.again()
  done(await start(again))
  await written(1)
  clock.set(Date.UTC(2031, 0, 1))
  done(await check(again))
  assert.equal(runs().length, 2)
  const other = generateKey('p256')
  fs.writeFileSync(keys, authority.pem + toPem('PUBLIC KEY', other.spki))
  done(await check(again))
  fs.writeFileSync(keys, toPem('PUBLIC KEY', other.spki))
  refusedFor(await start(again), 'STATEMENT_MISSING')
  refusedFor(await show(again, authority.statementKey), 'STATEMENT_NOT_SIGNED')
  done(await show(again, other))
  done(await check(again))
  fs.chmodSync(keys, 0o666)
  refusedFor(await check(again), 'KEYS_UNREADABLE')
  fs.rmSync(keys)
  refusedFor(await check(again), 'KEYS_UNREADABLE')
  refusedFor(await show(again, other), 'KEYS_UNREADABLE')
  assert.equal(runs().length, 4)
})

test('what is kept and damaged counts for nothing, and the next statement takes its place', async (t) => {
  const { host, authority } = pinnedHost(t)
  done(await show(host, authority.statementKey))
  const file = path.join(host.folder, 'state', 'tasks', 'overlay-statement')
  assert.equal(fs.statSync(file).mode & 0o777, 0o600)
  fs.truncateSync(file, 40)
  refusedFor(await check(host), 'STATEMENT_MISSING')
  fs.chmodSync(file, 0o666)
  refusedFor(await check(host), 'STATEMENT_MISSING')
  done(await show(host, authority.statementKey))
  done(await check(host))
})

test('a host without pinned keys starts what the agent asks for, as in 0.5, and one whose node is not said starts nothing', async (t) => {
  const { host, programs, keys, runs, written } = pinnedHost(t)
  assert.equal((done(await host.ask('hello', {})) as { overlays: string }).overlays, 'signed')
  host.allow(programs)
  const hello = done(await host.ask('hello', {})) as { overlays: string; verbs: string[] }
  assert.equal(hello.overlays, 'unsigned')
  assert.ok(!hello.verbs.includes('overlay.take'))
  done(await host.ask('service.start', { name: 'app', ...asked, arguments: ['--unsigned'] }))
  await written(1)
  done(await host.ask('service.stop', { name: 'app' }))
  // An agent of this release shows the definition to every helper of this release.
  done(await start(host))
  await written(2)
  assert.deepEqual(
    runs().map((line) => line.trim()),
    ['--unsigned', ''],
  )
  fs.writeFileSync(host.agentToml, `${programs}[tasks]\nstatement_keys = "${keys}"\n`)
  refusedFor(await start(host), 'STATEMENT_MISSING')
})

test('keys where root usually lays them down count without [tasks], from the moment that they are there', async (t) => {
  const folder = tempFolder(t)
  const keys = path.join(folder, 'statement-keys.pem')
  const authority = taskAuthority()
  const host = helpedHost(t, undefined, undefined, undefined, { statementKeys: keys })
  fs.chmodSync(host.folder, 0o755)
  host.allow(`[checks.disks]\nexecutable = "/bin/echo"\nuser = "${programUser}"\narguments = "any"\n`)
  done(await host.ask('check.run', { name: 'disks', arguments: ['unsigned'] }))
  fs.writeFileSync(keys, authority.pem, { mode: 0o644 })
  refusedFor(await check(host), 'STATEMENT_MISSING')
  done(await show(host, authority.statementKey))
  assert.equal((done(await check(host)) as { line: string }).line, 'signed')
  const kept = path.join(host.folder, 'state', 'tasks', 'overlay-statement')
  assert.equal(fs.existsSync(kept), true)
  fs.writeFileSync(keys, 'no key')
  refusedFor(await check(host), 'KEYS_UNREADABLE')
  // Root gives it up.
  fs.rmSync(keys)
  done(await host.ask('check.run', { name: 'disks', arguments: ['unsigned'] }))
})

test('what stands for the folder of the files is a full path that ends as that of an agent', async (t) => {
  const { host, authority } = pinnedHost(t)
  const placed = { ...app, command: ['/ignored', '{overlay}/app.conf'] }
  done(await show(host, authority.statementKey, { services: [signedService(placed)] }))
  for (const folder of ['--exec=/bin/sh', 'overlay/current', '/etc', '/a\n/overlay/current', '/overlay/current/..'])
    refusedWith(
      await host.ask('service.start', { name: 'app', ...asked, overlay: { definition: placed, folder } }),
      'BAD_REQUEST',
      /not a request of service.start/,
    )
  done(await start(host, placed))
})

test('an agent cannot put a command of its own into the words of a shell that a vCluster starts', async (t) => {
  const { host, authority, programs, runs } = pinnedHost(t)
  const shells = programs.replaceAll(/^executable = .*$/gm, 'executable = "/bin/sh"')
  fs.writeFileSync(host.agentToml, fs.readFileSync(host.agentToml, 'utf8').replace(programs, shells))
  const shell = { ...app, command: ['/bin/sh', '-c', 'exec /bin/cat {overlay}/app.conf'] }
  const look = { ...disks, command: ['/bin/sh', '-c', 'exec /bin/cat {overlay}/limits'] }
  done(await show(host, authority.statementKey, { services: [signedService(shell)], checks: [signedCheck(look)] }))
  const folder = `/$(id -un > ${path.join(host.folder, 'wrote')})/overlay/current`
  refusedWith(
    await host.ask('check.run', { name: 'disks', arguments: [], overlay: { definition: look, folder } }),
    'PATH_UNSAFE',
    /not a plain path.*--state/,
  )
  refusedWith(
    await host.ask('service.start', { name: 'app', ...asked, overlay: { definition: shell, folder } }),
    'PATH_UNSAFE',
    /not a plain path.*--state/,
  )
  assert.deepEqual(runs(), [])
})
