// Keys that are gone: what a start says when several are, and `muster ca replace-lost`, which makes them anew because a
// person says so. Every refusal, and every look before a reason is given, leaves the folder as it was.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import type { Failure } from '#cli/kit/failure.ts'
import { planeTrouble } from '#cli/plane/plane-trouble.ts'
import { runCli } from '#cli/kit/run-cli.ts'
import { planeConfig } from '#plane/config/config.ts'
import { replaceLostKeys } from '#plane/foundation/replace-lost-key.ts'
import { silentLog } from '#platform/log.ts'
import { connectPostgres } from '#platform/postgres.ts'
import { testCli } from '../fakes/test-cli.ts'
import { withPeer } from '../peers/peer.ts'
import { journalEntries } from '../process/plane-records.ts'
import { contentOf, copiesOfDomain } from '../process/made-domain.ts'
import { startPlaneHere } from '../process/plane-in-process.ts'
import { postgresDatabase } from '../process/postgres-server.ts'
import { tempFolder } from '../process/temp-folder.ts'

const domain = copiesOfDomain()

const keysOf = (data: string, role: string): string[] =>
  fs
    .readdirSync(path.join(data, 'keys'))
    // The public half of the journal's key is no key.
    .filter((name) => (role === 'journal' ? name === 'journal.key' : name.startsWith(`${role}.`)))
    .map((name) => path.join(data, 'keys', name))

const lose = (data: string, ...roles: readonly string[]): void =>
  roles.flatMap((role) => keysOf(data, role)).forEach((file) => fs.rmSync(file))

/** What an operator reads about a start that is refused; it has changed no file. */
const refusal = async (data: string, options: Readonly<Record<string, unknown>> = {}): Promise<Failure> => {
  const before = contentOf(data)
  const config = planeConfig({ data, ...options }, {})
  const failure = await startPlaneHere(data, options).then(
    async (plane) => {
      await plane.stop()
      return assert.fail('the plane has started')
    },
    (error: unknown) => planeTrouble(error, { config }) as Failure,
  )
  assert.deepEqual(contentOf(data), before)
  assert.equal(failure.exit, 78, failure.message)
  return failure
}

const order = { actor: 'host:tester', reason: 'the disk is gone' }

const replacing = async (args: readonly string[]) => {
  const { cli, stdout, stderr } = testCli({ env: { MUSTER_LOG_LEVEL: 'silent' } })
  const code = await runCli(['ca', 'replace-lost', ...args], cli)
  return { code, out: stdout(), err: stderr() }
}

const pairs = [
  ['issuing', 'statement'],
  ['bearer', 'statement'],
  ['issuing', 'recovery'],
  ['journal', 'issuing', 'recovery', 'statement', 'bearer'],
]

for (const roles of pairs) {
  test(`L5: with ${roles.join(' and ')} lost, the start names all, and its one command replaces all`, async (t) => {
    const data = await domain(t)
    lose(data, ...roles, ...(roles.includes('recovery') ? ['recovery-server'] : []))
    const { code, detail, next } = await refusal(data)
    assert.equal(code, 'KEY_MISSING')
    for (const role of roles) assert.match(detail ?? '', new RegExp(`\\b${role}\\.`))
    const [, named = ''] = /muster ca replace-lost ([a-z ]+) --data/.exec(next ?? '') ?? []
    assert.deepEqual(named.split(' ').sort(), roles.toSorted())
    for (const role of roles) {
      const alone = await replacing([role, '--data', data, '--reason', 'alone'])
      assert.equal(alone.code, 78, alone.err)
    }
    const done = await replacing([...named.split(' '), '--data', data, '--reason', 'the disk is gone'])
    assert.equal(done.code, 0, done.err)
    const plane = await startPlaneHere(data)
    assert.equal((await plane.api('POST', '/v1/journal/verify', {})).body.intact, true)
    const entries = await journalEntries(plane, { type: 'ca.created' })
    await plane.stop()
    const told = entries.filter(({ body }) => body.reason === 'the disk is gone')
    assert.deepEqual(told.map(({ body }) => body.role).sort(), roles.toSorted())
    for (const { actor } of told) assert.match(actor, /^host:/)
  })
}

test('L5: a keys/ that is missing, empty or lacks the root and more is to be restored as a whole', async (t) => {
  const data = await domain(t)
  const whole = path.join(tempFolder(t), 'keys')
  fs.cpSync(path.join(data, 'keys'), whole, { recursive: true })
  fs.rmSync(path.join(data, 'keys'), { recursive: true })
  for (const state of ['missing', 'empty', 'without most']) {
    if (state === 'empty') fs.mkdirSync(path.join(data, 'keys'))
    if (state === 'without most') {
      fs.cpSync(whole, path.join(data, 'keys'), { recursive: true })
      lose(data, 'root', 'issuing', 'statement', 'journal')
    }
    const { code, detail, next } = await refusal(data)
    assert.equal(code, 'KEY_MISSING')
    assert.match(
      detail ?? '',
      state === 'without most'
        ? /^4 keys on record are gone .*the root/
        : /^keys\/ is missing or empty \(6 keys on record, among them the root\)/,
    )
    assert.match(next ?? '', /mounted, is a restore unfinished\? Restore keys\/ as a whole/)
    assert.doesNotMatch(next ?? '', /replace-lost/)
    const before = contentOf(data)
    const { code: exit, err } = await replacing(['journal', '--data', data, '--reason', 'x'])
    assert.equal(exit, 78, err)
    assert.deepEqual(contentOf(data), before)
  }
})

test('L5: the journal key is not replaced where its public half is gone too', async (t) => {
  const data = await domain(t)
  for (const name of fs.readdirSync(path.join(data, 'keys')).filter((one) => one.startsWith('journal.')))
    fs.rmSync(path.join(data, 'keys', name))
  const { detail, next } = await refusal(data)
  assert.match(detail ?? '', /could never be verified again/)
  assert.doesNotMatch(next ?? '', /replace-lost/)
  const before = contentOf(data)
  const { code, err } = await replacing(['journal', '--data', data, '--reason', 'x'])
  assert.equal(code, 78)
  assert.match(err, /could never be verified again/)
  assert.deepEqual(contentOf(data), before)
})

test('L5: without a reason replace-lost shows what it would do, and does nothing', async (t) => {
  const data = await domain(t)
  lose(data, 'statement', 'bearer')
  const before = contentOf(data)
  const { code, out, err } = await replacing(['statement', 'bearer', '--data', data])
  assert.equal(code, 1)
  assert.match(out, /would be replaced +the statement key[^]*repair-bundle[^]*the bearer key/)
  assert.match(err, new RegExp(`Nothing was done.*ca replace-lost statement bearer --data ${data} --reason REASON`))
  assert.deepEqual(contentOf(data), before)
})

test('a command that an error names has the data folder and the sealing key the plane ran with', async (t) => {
  const sealKey = path.join(tempFolder(t), 'seal.key')
  fs.writeFileSync(sealKey, `${'ab'.repeat(32)}\n`, { mode: 0o600 })
  const data = path.join(tempFolder(t), 'd')
  await (await startPlaneHere(data, { sealKey })).stop()
  lose(data, 'bearer')
  const { next } = await refusal(data, { sealKey })
  assert.ok(
    next?.endsWith(`muster ca replace-lost bearer --data ${data} --seal-key ${sealKey} --reason REASON`),
    next ?? '',
  )
})

test('usage errors of replace-lost point to its help, which lists what it needs and what each key costs', async (t) => {
  const data = await domain(t)
  for (const wrong of [['nonsense'], ['bearer']]) {
    const { code, err } = await replacing([...wrong, '--data', data, '--reason', 'x'])
    assert.equal(code, 2, err)
    assert.match(err, /next: \.\/muster ca replace-lost --help/)
  }
  const { out } = await replacing(['--help'])
  const options = [...out.matchAll(/^ {2}(?:-\w, )?(--[a-z-]+)/gm)].map(([, option]) => option)
  for (const option of ['--store', '--seal-key', '--reason']) assert.ok(options.includes(option), out)
  assert.ok(!options.includes('--node-listen') && !options.includes('--root-out'), out)
  for (const role of ['issuing', 'recovery', 'statement', 'bearer', 'journal'])
    assert.match(out, new RegExp(`^ {2}${role} +[a-z]`, 'm'))
})

test('Of a damaged key that is moved away, the start makes anew what machines do not rely on', async (t) => {
  const data = path.join(tempFolder(t), 'd')
  const first = await startPlaneHere(data)
  assert.equal((await first.api('POST', '/v1/ca/rotate')).status, 200)
  await first.stop()
  const outcomes = new Set<string>()
  for (const name of fs.readdirSync(path.join(data, 'keys'))) {
    const copy = path.join(tempFolder(t), 'd')
    fs.cpSync(data, copy, { recursive: true })
    const file = path.join(copy, 'keys', name)
    const damaged = fs.readFileSync(file)
    damaged[60] = (damaged[60] ?? 0) ^ 1
    fs.writeFileSync(file, damaged)
    const { code, next } = await refusal(copy)
    assert.equal(code, 'KEY_DAMAGED', name)
    assert.match(next ?? '', /move it out of keys\//)
    fs.rmSync(file)
    const kind = name.replace(/^journal\.[0-9a-f]+/, 'journal.KEY_ID').replace(/\.[0-9a-f.]+key$/, '')
    const outcome = await startPlaneHere(copy).then(
      async (plane) => {
        const { body } = await plane.api('GET', '/readyz')
        const { intact } = (await plane.api('POST', '/v1/journal/verify', {})).body
        await plane.stop()
        const isBack = kind.startsWith('journal')
          ? fs.existsSync(file)
          : keysOf(copy, kind).length === keysOf(data, kind).length
        return `${isBack ? 'made anew' : 'not made'}, ${intact ? 'intact' : 'broken'}, ${(body.warnings ?? []).length} warnings`
      },
      (error: { readonly code: string }) => error.code,
    )
    outcomes.add(`${kind}: ${outcome}`)
  }
  // As docs/TROUBLESHOOTING.md says.
  assert.deepEqual([...outcomes].sort(), [
    'bearer: KEY_MISSING',
    'issuing: KEY_MISSING',
    'journal.KEY_ID.key: made anew, intact, 0 warnings',
    'journal.key: KEY_MISSING',
    'recovery-server: made anew, intact, 0 warnings',
    'recovery: not made, intact, 1 warnings',
    'responder: made anew, intact, 0 warnings',
    // Of the CA that was replaced.
    'responder: not made, intact, 0 warnings',
    'retired: not made, intact, 0 warnings',
    'root: not made, intact, 1 warnings',
    'server: made anew, intact, 0 warnings',
    'statement: KEY_MISSING',
    'task-signer: not made, intact, 1 warnings',
  ])
})

test('L5: an operator can have each lost key but the root replaced, and only a lost one; the journal stays intact', async (t) => {
  const data = await domain(t)
  const config = planeConfig({ data }, {})
  for (const role of ['journal', 'issuing', 'recovery', 'statement', 'bearer']) {
    const before = contentOf(path.join(data, 'keys'))
    await assert.rejects(replaceLostKeys(config, [role], order, silentLog), /is not lost/, role)
    assert.deepEqual(contentOf(path.join(data, 'keys')), before)
    const lost = keysOf(data, role)
    lose(data, role)
    await replaceLostKeys(config, [role], order, silentLog)
    assert.equal(keysOf(data, role).length, 1, role)
    if (role !== 'journal') assert.ok(!lost.some((file) => fs.existsSync(file)))
  }
  const plane = await startPlaneHere(data)
  assert.equal((await plane.api('POST', '/v1/journal/verify', {})).body.intact, true)
  assert.doesNotMatch(JSON.stringify((await plane.api('GET', '/readyz')).body.warnings ?? []), /gone|damaged|journal/)
  const { body } = await plane.api('GET', '/v1/ca')
  assert.equal(body.authorities.filter(({ role }: { role: string }) => role === 'recovery').length, 2)
  await plane.stop()
})

test('L5: on PostgreSQL several lost keys are replaced at once, and an empty sealed_key is to be restored', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const { env, target } = await postgresDatabase(t)
  const query = async (sql: string): Promise<void> => {
    const connection = await connectPostgres(target, { applicationName: 'muster test', connectWithinMs: 5000 })
    await connection.exec(sql)
    await connection.end()
  }
  const data = path.join(tempFolder(t), 'd')
  const start = () => startPlaneHere(data, { store: 'postgres' }, undefined, env)
  await (await start()).stop()
  const config = planeConfig({ data, store: 'postgres' }, env)
  const nextOf = async () =>
    start().then(
      () => assert.fail('started'),
      (error: unknown) => planeTrouble(error, { config }) as Failure,
    )
  await query(`DELETE FROM sealed_key WHERE name ~ '^(journal/head|issuing|statement)'`)
  assert.match(
    (await nextOf()).next ?? '',
    /replace-lost issuing statement journal --data .* --store postgres --reason/,
  )
  await replaceLostKeys(config, ['issuing', 'statement', 'journal'], order, silentLog)
  const plane = await start()
  assert.equal((await plane.api('POST', '/v1/journal/verify', {})).body.intact, true)
  await plane.stop()
  await query('DELETE FROM sealed_key')
  const { code, next } = await nextOf()
  assert.equal(code, 'KEY_MISSING')
  assert.doesNotMatch(next ?? '', /replace-lost/)
})
