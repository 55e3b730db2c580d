// `muster agent cert` on a machine whose agent has written its status, and on one without an agent.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { openRecord } from '#agent/diagnostics/record.ts'
import { statusPath, type StatusFile } from '#agent/diagnostics/status-file.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { runCli } from '#cli/kit/run-cli.ts'
import { makeCsr } from '#pki/csr.ts'
import { generateKey } from '#pki/keys.ts'
import { systemClock } from '#platform/clock.ts'
import { outputOf, programsAuthority } from '../fakes/programs-authority.ts'
import { testCli } from '../fakes/test-cli.ts'
import { tempFolder } from '../process/temp-folder.ts'

const hour = 3_600_000
const { clock } = testCli({}).cli
const at = (ms: number): string => new Date(clock.nowMs() + ms).toISOString()

const machine = (t: TestContext) => {
  const folder = tempFolder(t)
  const place = path.join(folder, 'outputs', 'web')
  fs.mkdirSync(place, { recursive: true })
  const { certificate_chain } = programsAuthority(Date.now()).leafFor(makeCsr(generateKey('p256'), 'web'), outputOf())
  fs.writeFileSync(path.join(place, 'cert.pem'), certificate_chain)
  const record = openRecord(systemClock, { pressure: () => false })
  const output = {
    name: 'web',
    place,
    serial: 'a1b2',
    not_after: at(23 * hour),
    renew_at: at(13 * hour),
    lists_until: at(70 * hour),
    key_type: 'p256',
    names: ['dns:web.example.test'],
    reload: 'nginx',
    failure: null,
  } satisfies NonNullable<StatusFile['outputs']>[number]
  const old = { ...output, name: 'old', not_after: at(-2 * hour), failure: 'POLICY_DENIED' }
  const lost = {
    ...output,
    name: 'db',
    place: null,
    serial: null,
    not_after: null,
    renew_at: null,
    failure: 'no place',
  }
  record.facts({ outputs: [output, lost, old] })
  fs.writeFileSync(statusPath(folder), JSON.stringify(record.now().status))
  const run = async (...words: string[]) => {
    const it = testCli({})
    const code = await runCli(['agent', 'cert', ...words, '--state', folder], it.cli)
    return { code, out: it.stdout(), err: it.stderr() }
  }
  return { folder, place, run, outputs: [output, lost, old] }
}

test('list shows every output, its leaf, its place and what is wrong', async (t) => {
  const { run, place, outputs } = machine(t)
  const { code, out } = await run('list')
  assert.equal(code, 0)
  const [header, web, db, old] = out.trim().split('\n')
  assert.match(header ?? '', /^OUTPUT +SERIAL +ENDS +RENEWED +PATH +FAILURE$/)
  assert.match(web ?? '', new RegExp(`^web +a1b2 +in 23 h +in 13 h +${place} +-$`))
  assert.match(db ?? '', /^db +- +- +- +- +no place$/)
  assert.match(old ?? '', /^old +a1b2 +2 h ago .+ POLICY_DENIED$/)
  assert.deepEqual(JSON.parse((await run('list', '-o', 'json')).out), { outputs })
})

test('show adds what the certificate in place says', async (t) => {
  const { run, place } = machine(t)
  const { out } = await run('show', 'web')
  assert.match(out, /^subject +spiffe:\/\/example\.test\/node\/gpu-001\/program\/web$/m)
  assert.match(out, /^usage +serverAuth$/m)
  assert.match(out, /^reload +nginx$/m)
  const shown = JSON.parse((await run('show', 'web', '-o', 'json')).out) as { files: string[]; certificate: object }
  assert.deepEqual(shown.files, [path.join(place, 'cert.pem')])
  assert.match((await run('show', 'db')).out, /^path +none on this host$/m)
})

test('path prints one line for a configuration or a shell, and says why there is none', async (t) => {
  const { run, place } = machine(t)
  assert.equal((await run('path', 'web')).out, `${place}\n`)
  assert.equal((await run('path', 'web', '--file', 'crl.pem')).out, `${place}/crl.pem\n`)
  const none = await run('path', 'db')
  assert.equal(none.code, exitCodes.notReady)
  assert.match(none.err, /has no place for output db[\s\S]*--publish DIR/)
  const unknown = await run('path', 'other')
  assert.equal(unknown.code, exitCodes.notFound)
  assert.match(unknown.err, /no output other[\s\S]*agent cert list/)
})

test('a folder in which no agent has run is said', async (t) => {
  const it = testCli({})
  assert.equal(await runCli(['agent', 'cert', 'list', '--state', tempFolder(t)], it.cli), exitCodes.notReady)
  assert.match(it.stderr(), /No agent has run on[\s\S]*next: Start it: \.\/muster agent run --state \/\S+\n$/)
})

test('a list without outputs says why there are none, and what to do', async (t) => {
  const { folder, run } = machine(t)
  const status = openRecord(systemClock, { pressure: () => false }).now().status
  const listed = async (changes: Partial<StatusFile>): Promise<string> => {
    fs.writeFileSync(statusPath(folder), JSON.stringify({ ...status, outputs: [], ...changes }))
    return (await run('list')).err
  }
  assert.match(await listed({}), /no identity yet.*next: \.\/muster agent explain --state \//)
  assert.match(await listed({ node_id: 'gpu-001' }), /lists none; next, on the plane: \.\/muster node show gpu-001\n$/)
  const outcome = { kind: 'revoked', code: 'NODE_REVOKED', text: 'This node has been revoked.', next: 'Register it' }
  assert.match(await listed({ node_id: 'gpu-001', outcome }), /This node has been revoked\. next: Register it\n$/)
})
