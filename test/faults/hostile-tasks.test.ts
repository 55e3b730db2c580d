// A hostile agent, channel or plane at the helper: nothing is run that a signer of this domain has not signed for this node, and that
// once. The fields of both statements are flipped one by one beside the code (judge-task.test.ts, judge-statement.test.ts).

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { generateKey } from '#pki/keys.ts'
import { toPem } from '#pki/pem.ts'
import type { Scope } from '../process/cleanup.ts'
import { done, refusedWith } from '../fakes/helped-host.ts'
import { hourMs, spkiOf, verifierOf, withField } from '../fakes/signed-tasks.ts'
import { idOf, programUser, refusedAs, taskedHost, type TaskedHost } from '../fakes/tasked-host.ts'

/** A host with a program that counts how often it was run. */
const countingHost = (t: Scope): { readonly tasked: TaskedHost; runs(): number } => {
  const tasked = taskedHost(t)
  const counted = path.join(tasked.host.folder, 'counted')
  fs.writeFileSync(counted, '', { mode: 0o666 })
  fs.chmodSync(counted, 0o666)
  const program = tasked.script('count', `echo ran >> ${counted}; echo hello`)
  tasked.list(`[tasks.run.hello]\nexecutable = "${program}"\nuser = "${programUser}"\n`)
  return { tasked, runs: () => fs.readFileSync(counted, 'utf8').split('\n').length - 1 }
}

test('T31: a task is carried out once: replayed after its success, by another helper and after its expiry it is known', async (t) => {
  const { tasked, runs } = countingHost(t)
  await tasked.learn()
  const task = tasked.authority.task()
  assert.deepEqual(done(await tasked.begin(task)), { outcome: 'begun' })
  const result = await tasked.ended(idOf(task))
  assert.deepEqual([result.code, result.exit_code, result.output], [null, 0, { head: 'hello\n', tail: '', bytes: 6 }])
  assert.deepEqual(done(await tasked.begin(task)), { outcome: 'known' })
  const again = await tasked.restart()
  assert.deepEqual(done(await again.begin(task)), { outcome: 'known' })
  assert.deepEqual(await again.ended(idOf(task)), result)
  again.clock.advance(2 * hourMs)
  assert.deepEqual(done(await again.begin(task)), { outcome: 'known' })
  done(await again.host.ask('task.forget', { id: idOf(task) }))
  assert.deepEqual((await again.look()).tasks, [])
  // Its id is given up, and with it every task that expires as early.
  refusedAs(await again.begin(task), 'FRESH_STATEMENT_NEEDED')
  assert.equal(fs.existsSync(path.join(again.host.folder, 'state', 'tasks', `${idOf(task)}.json`)), false)
  again.clock.set(again.clock.nowMs() - 2 * hourMs)
  refusedAs(await again.begin(task), 'FRESH_STATEMENT_NEEDED')
  // Also where a plane says that it is as early: its clock was set back as well.
  await again.learn()
  refusedAs(await again.begin(task), 'SEEN_BEFORE')
  const last = await again.restart()
  refusedAs(await last.begin(task), 'SEEN_BEFORE')
  assert.equal(runs(), 1)
})

test('a result that the plane has is given up, and its task is not carried out again', async (t) => {
  const { tasked, runs } = countingHost(t)
  await tasked.learn()
  const task = tasked.authority.task()
  done(await tasked.begin(task))
  await tasked.ended(idOf(task))
  done(await tasked.host.ask('task.forget', { id: idOf(task) }))
  refusedAs(await tasked.begin(task), 'SEEN_BEFORE')
  refusedAs(await (await tasked.restart()).begin(task), 'SEEN_BEFORE')
  assert.equal(runs(), 1)
})

test('T31: what is not signed for this node, in this epoch, by a signer that counts is not run', async (t) => {
  const { tasked, runs } = countingHost(t)
  const { authority } = tasked
  refusedAs(await tasked.begin(authority.task()), 'STATEMENT_MISSING')
  refusedAs(await tasked.begin(authority.task(), authority.statement()), 'FRESH_STATEMENT_NEEDED')
  refusedAs(
    await tasked.begin(authority.task(), authority.statement({ nonce: 'nonce-of-another-helper' })),
    'STATEMENT_OF_ANOTHER',
  )
  await tasked.learn()
  const stranger = generateKey('ed25519')
  refusedAs(await tasked.begin(authority.task({}, stranger)), 'SIGNER_UNKNOWN')
  const own = authority.statement({ verifiers: [verifierOf(stranger)], number: 8 }, stranger)
  refusedAs(await tasked.begin(authority.task({}, stranger), own), 'STATEMENT_NOT_SIGNED')
  const bySigner = authority.statement({ verifiers: [verifierOf(stranger)], number: 8 }, authority.signer)
  refusedAs(await tasked.begin(authority.task({}, stranger), bySigner), 'STATEMENT_NOT_SIGNED')
  refusedAs(await tasked.begin(withField(authority.task(), 'parameters', { name: 'other' })), 'NOT_SIGNED')
  refusedAs(await tasked.begin(authority.task({ node: 'gpu-002' })), 'WRONG_NODE')
  refusedAs(await tasked.begin(authority.task({ domain: 'other.test' })), 'WRONG_DOMAIN')
  refusedAs(await tasked.begin(authority.task({ epoch: 2 })), 'WRONG_EPOCH')
  refusedWith(await tasked.host.ask('task.begin', { task: 'x' } as never), 'BAD_REQUEST', /not a request/)
  assert.deepEqual([runs(), (await tasked.look()).tasks], [0, []])
})

test('a withdrawn signer is refused from then on, and an older statement does not bring it back', async (t) => {
  const { tasked, runs } = countingHost(t)
  const { authority } = tasked
  await tasked.learn()
  const before = authority.statement({ issued_ms: tasked.clock.nowMs() + 1, expires_ms: tasked.clock.nowMs() + hourMs })
  const withdrawn = authority.statement({ number: 8, verifiers: [], withdrawn: [verifierOf(authority.signer).key] })
  refusedAs(await tasked.begin(authority.task(), withdrawn), 'SIGNER_WITHDRAWN')
  refusedAs(await tasked.begin(authority.task(), before), 'STATEMENT_OLDER')
  const again = await tasked.restart()
  refusedAs(await again.begin(authority.task(), before), 'STATEMENT_OLDER')
  refusedAs(await again.begin(authority.task()), 'SIGNER_WITHDRAWN')
  assert.equal((await again.look()).number, 8)
  assert.equal(runs(), 0)
})

test('a withheld withdrawal lapses within a day, and a new epoch ends the tasks of the one before', async (t) => {
  const { tasked, runs } = countingHost(t)
  await tasked.learn()
  tasked.clock.advance(24 * hourMs)
  const nowMs = tasked.clock.nowMs()
  const later = { issued_ms: nowMs, expires_ms: nowMs + hourMs }
  refusedAs(await tasked.begin(tasked.authority.task(later)), 'FRESH_STATEMENT_NEEDED')
  await tasked.learn({ ...later, epoch: 4 })
  refusedAs(await tasked.begin(tasked.authority.task(later)), 'WRONG_EPOCH')
  refusedAs(await tasked.begin(tasked.authority.task(later), tasked.authority.statement(later)), 'STATEMENT_OLDER')
  done(await tasked.begin(tasked.authority.task({ ...later, epoch: 4 })))
  await tasked.host.close()
  assert.ok(runs() <= 1)
})

test('on a diskless host nothing of the epoch before is believed after a restart', async (t) => {
  const { tasked, runs } = countingHost(t)
  const { authority } = tasked
  await tasked.learn()
  const [task, statement] = [authority.task(), authority.statement()]
  done(await tasked.begin(task))
  await tasked.ended(idOf(task))
  await tasked.host.close()
  // The machine was started anew, with nothing on its disk, and joined in a new epoch.
  fs.rmSync(path.join(tasked.host.folder, 'state', 'tasks'), { recursive: true })
  const again = await tasked.restart()
  refusedAs(await again.begin(task), 'STATEMENT_MISSING')
  refusedAs(await again.begin(task, statement), 'FRESH_STATEMENT_NEEDED')
  await again.learn({ epoch: 4 })
  refusedAs(await again.begin(task), 'WRONG_EPOCH')
  assert.equal(runs(), 1)
})

test('a helper that lost its memory in the same epoch takes no task from before: it does not know what was begun', async (t) => {
  const { tasked, runs } = countingHost(t)
  const { authority } = tasked
  await tasked.learn()
  const [begun, withheld] = [authority.task(), authority.task()]
  done(await tasked.begin(begun))
  await tasked.ended(idOf(begun))
  await tasked.host.close()
  // The state was in /run, or was purged, and the identity is on the disk.
  fs.rmSync(path.join(tasked.host.folder, 'state', 'tasks'), { recursive: true })
  tasked.clock.advance(60_000)
  const again = await tasked.restart()
  const nowMs = again.clock.nowMs()
  const { nonce } = done(await again.host.ask('task.nonce', {})) as { nonce: string }
  assert.equal((await again.look()).number, null)
  const statement = authority.statement({ nonce, issued_ms: nowMs })
  assert.deepEqual(done(await again.host.ask('task.learn', { statement })), {})
  assert.equal((await again.look()).number, 7)
  refusedAs(await again.begin(begun), 'SEEN_BEFORE')
  refusedAs(await again.begin(withheld), 'SEEN_BEFORE')
  // Also after newer statements, and by the next helper.
  again.clock.advance(60_000)
  refusedAs(await again.begin(withheld, authority.statement({ issued_ms: again.clock.nowMs() })), 'SEEN_BEFORE')
  const last = await again.restart()
  refusedAs(await last.begin(withheld), 'SEEN_BEFORE')
  assert.equal(runs(), 1)
  done(await last.begin(authority.task({ issued_ms: nowMs })))
  await last.host.close()
})

test('a second helper takes no task while the first has its memory', async (t) => {
  const { tasked, runs } = countingHost(t)
  await tasked.learn()
  const second = tasked.host.again()
  const task = tasked.authority.task()
  refusedAs(await second.ask('task.begin', { statement: null, task }), 'HELPER_BUSY')
  refusedAs(await second.ask('task.look', {}), 'HELPER_BUSY')
  await tasked.host.close()
  done(await second.ask('task.begin', { statement: null, task }))
  await second.close()
  assert.ok(runs() <= 1)
})

test('a seen task is known whatever statement comes with it', async (t) => {
  const { tasked } = countingHost(t)
  await tasked.learn()
  const task = tasked.authority.task()
  done(await tasked.begin(task))
  await tasked.ended(idOf(task))
  const older = tasked.authority.statement({ number: 6 })
  assert.deepEqual(done(await tasked.begin(task, older)), { outcome: 'known' })
  refusedAs(await tasked.begin(tasked.authority.task(), older), 'STATEMENT_OLDER')
})

test('a clock that is years off decides nothing: a statement with the nonce of the helper proves the time', async (t) => {
  const { tasked, runs } = countingHost(t)
  const { authority, clock } = tasked
  await tasked.learn()
  const rightMs = clock.nowMs()
  clock.set(Date.UTC(2001, 0, 1))
  const again = await tasked.restart()
  refusedAs(await again.begin(authority.task()), 'FRESH_STATEMENT_NEEDED')
  await again.learn({ issued_ms: rightMs + 1, expires_ms: rightMs + hourMs })
  const task = authority.task()
  done(await again.begin(task))
  await again.ended(idOf(task))
  clock.advance(2 * hourMs)
  refusedAs(await again.begin(authority.task()), 'FRESH_STATEMENT_NEEDED')
  await again.learn({ issued_ms: rightMs + 2 * hourMs, expires_ms: rightMs + 3 * hourMs })
  refusedAs(await again.begin(authority.task()), 'TASK_EXPIRED')
  assert.equal(runs(), 1)
})

test('a plane whose clock was years ahead closes a host until root removes statement.json', async (t) => {
  const { tasked, runs } = countingHost(t)
  const { authority, clock } = tasked
  const rightMs = clock.nowMs()
  const yearMs = 365 * 24 * hourMs
  await tasked.learn({ issued_ms: rightMs + yearMs, expires_ms: rightMs + yearMs + hourMs })
  // The clock of the plane is right again, and the host believes that at once; which tasks it began before its first statement it still does not know.
  await tasked.learn({ issued_ms: rightMs + 1 })
  const task = authority.task({ issued_ms: rightMs + 2 })
  refusedAs(await tasked.begin(task), 'SEEN_BEFORE')
  fs.rmSync(path.join(tasked.host.folder, 'state', 'tasks', 'statement.json'))
  refusedAs(await tasked.begin(task), 'STATEMENT_MISSING')
  await tasked.learn({ issued_ms: rightMs + 2 })
  done(await tasked.begin(task))
  await tasked.ended(idOf(task))
  assert.deepEqual(done(await tasked.begin(task)), { outcome: 'known' })
  assert.equal(runs(), 1)
})

test('a statement lapses though the clock of the host is held back, also over a restart', async (t) => {
  const { tasked, runs } = countingHost(t)
  const { authority, clock } = tasked
  await tasked.learn()
  const heldMs = clock.nowMs()
  const hold = (hours: number): void => {
    clock.advance(hours * hourMs)
    clock.set(heldMs)
  }
  hold(12)
  refusedAs(await tasked.begin(authority.task()), 'FRESH_STATEMENT_NEEDED')
  const again = await tasked.restart()
  refusedAs(await again.begin(authority.task()), 'FRESH_STATEMENT_NEEDED')
  assert.equal(runs(), 0)
})

test('statement keys are pinned once, and change under a pinned key or by root alone', async (t) => {
  const { tasked } = countingHost(t)
  const { authority, host } = tasked
  await tasked.learn()
  const next = generateKey('ed25519')
  const handed = authority.statement({ number: 8, statement_keys: [spkiOf(next)] })
  refusedAs(await tasked.begin(authority.task({ epoch: 9 }), handed), 'WRONG_EPOCH')
  refusedAs(await tasked.begin(authority.task(), authority.statement({ number: 9 })), 'STATEMENT_NOT_SIGNED')
  const again = await tasked.restart()
  refusedAs(await again.begin(authority.task(), authority.statement({ number: 9 })), 'STATEMENT_NOT_SIGNED')
  refusedAs(await again.begin(authority.task({ epoch: 9 }), authority.statement({ number: 9 }, next)), 'WRONG_EPOCH')
  // Root adds a key: what was signed before counts no more, the number still does.
  const third = generateKey('p256')
  const file = path.join(host.folder, 'statement-keys.pem')
  fs.writeFileSync(file, authority.pem + toPem('PUBLIC KEY', third.spki))
  refusedAs(await again.begin(authority.task()), 'STATEMENT_MISSING')
  refusedAs(await again.begin(authority.task(), authority.statement({ number: 8 }, third)), 'STATEMENT_OLDER')
  refusedAs(await again.begin(authority.task(), authority.statement({ number: 10 }, next)), 'STATEMENT_NOT_SIGNED')
  const both = { number: 9, statement_keys: [authority.statementKey, third].map(spkiOf) }
  refusedAs(await again.begin(authority.task({ epoch: 9 }), authority.statement(both, third)), 'WRONG_EPOCH')
  fs.chmodSync(file, 0o666)
  refusedAs(await again.begin(authority.task()), 'KEYS_UNREADABLE')
  fs.rmSync(file)
  refusedAs(await again.begin(authority.task()), 'KEYS_UNREADABLE')
})

test('root frees a host from what a thief of the statement key has said, and from another identity', async (t) => {
  const { tasked, runs } = countingHost(t)
  const { authority, host } = tasked
  await tasked.learn({ number: Number.MAX_SAFE_INTEGER, epoch: 1_000_000 })
  refusedAs(await tasked.begin(authority.task(), authority.statement({ number: 8 })), 'STATEMENT_OLDER')
  // None of the keys before is in the new file.
  const replaced = generateKey('ed25519')
  fs.writeFileSync(path.join(host.folder, 'statement-keys.pem'), toPem('PUBLIC KEY', replaced.spki))
  const learned = async (change: object) => {
    const { nonce } = done(await host.ask('task.nonce', {})) as { nonce: string }
    const statement = authority.statement({ nonce, statement_keys: [spkiOf(replaced)], ...change }, replaced)
    return host.ask('task.learn', { statement })
  }
  const old = authority.statement({ number: 8 }, replaced)
  refusedAs(await tasked.begin(authority.task(), old), 'FRESH_STATEMENT_NEEDED')
  done(await learned({ number: 8 }))
  // The machine became another node: its number and epoch are those of a new one.
  host.allow('')
  const toml = fs.readFileSync(host.agentToml, 'utf8')
  tasked.list('')
  const tasks = fs.readFileSync(host.agentToml, 'utf8').slice(toml.length)
  fs.writeFileSync(host.agentToml, toml.replace('"gpu-001"', '"gpu-002"') + tasks)
  const other = { node: 'gpu-002', epoch: 1, number: 2 }
  const statement = authority.statement({ ...other, statement_keys: [spkiOf(replaced)] }, replaced)
  refusedAs(await host.ask('task.learn', { statement }), 'FRESH_STATEMENT_NEEDED')
  done(await learned(other))
  assert.deepEqual([(await tasked.look()).epoch, runs()], [1, 0])
})

test('damaged memory is refused and not forgotten', async (t) => {
  const { tasked, runs } = countingHost(t)
  await tasked.learn()
  const task = tasked.authority.task()
  done(await tasked.begin(task))
  await tasked.ended(idOf(task))
  await tasked.host.close()
  const folder = path.join(tasked.host.folder, 'state', 'tasks')
  fs.writeFileSync(path.join(folder, `${idOf(task)}.json`), '{"version":1')
  const again = await tasked.restart()
  assert.deepEqual(done(await again.begin(task)), { outcome: 'known' })
  assert.equal((await again.ended(idOf(task))).code, 'INTERRUPTED')
  fs.writeFileSync(path.join(folder, 'statement.json'), '')
  refusedAs(await again.begin(tasked.authority.task()), 'NOT_DONE')
  refusedWith(await again.host.ask('task.look', {}), 'TASK_REFUSED', /statement.json is damaged/)
  assert.equal(runs(), 1)
})

test('a host without [tasks] takes none, and one that others could read along keeps none', async (t) => {
  const { tasked } = countingHost(t)
  tasked.host.allow('')
  refusedWith(await tasked.host.ask('task.look', {}), 'NOT_ALLOWED', /has no \[tasks\]/)
  refusedWith(await tasked.begin(tasked.authority.task()), 'NOT_ALLOWED', /has no \[tasks\]/)
  assert.equal(fs.existsSync(path.join(tasked.host.folder, 'state', 'tasks')), false)
  const open = path.join(tasked.host.folder, 'open')
  fs.mkdirSync(open)
  fs.chmodSync(open, 0o777)
  tasked.list(`state = "${open}"\n`)
  refusedAs(await tasked.begin(tasked.authority.task()), 'PATH_UNSAFE')
})
