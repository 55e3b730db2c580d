// Every operator key is lost. A person who has the store and its sealing key makes a new one on the host, and the journal
// says so.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { runCli } from '#cli/kit/run-cli.ts'
import { testCli } from '../fakes/test-cli.ts'
import { withPeer } from '../peers/peer.ts'
import { journalEntries } from '../process/plane-records.ts'
import { startPlaneHere } from '../process/plane-in-process.ts'
import { postgresDatabase } from '../process/postgres-server.ts'
import { tempFolder } from '../process/temp-folder.ts'

const making = async (data: string, env: Readonly<Record<string, string>> = {}, name = 'anew') => {
  const { cli, stdout, stderr } = testCli({ env: { MUSTER_LOG_LEVEL: 'silent', ...env } })
  const code = await runCli(['key', 'create', name, '--role', 'platform-admin', '--offline', '--data', data], cli)
  return { code, secret: stdout().trim(), err: stderr() }
}

for (const store of ['sqlite', 'postgres']) {
  test(`with admin.key lost, a key made offline opens the domain, on ${store}`, async (t) => {
    if (store === 'postgres' && withPeer(t, 'postgres') === null) return
    const database = store === 'postgres' ? (await postgresDatabase(t)).env : {}
    const env = { ...database, MUSTER_STORE: store }
    const data = path.join(tempFolder(t), 'd')
    const first = await startPlaneHere(data, {}, undefined, env)
    if (store === 'sqlite') assert.match((await making(data, env)).err, /DATA_FOLDER_IN_USE/)
    await first.stop()
    fs.rmSync(path.join(data, 'admin.key'))
    const { code, secret, err } = await making(data, env)
    assert.equal(code, 0, err)
    assert.match((await making(data, env)).err, /a key named anew is in use/)
    const plane = await startPlaneHere(data, {}, secret, env)
    assert.equal(plane.ready.adminKeyHere, false)
    const { body } = await plane.api('GET', '/v1/keys')
    const made = body.keys.find(({ name }: { name: string }) => name === 'anew')
    assert.match(made.created_by, /^host:/)
    const lost = body.keys.find(({ name }: { name: string }) => name === 'admin')
    assert.equal((await plane.api('POST', `/v1/keys/${lost.id}/revoke`)).status, 200)
    const entries = await journalEntries(plane, { type: 'operator_key.created' })
    assert.match(entries.at(-1)?.actor, /^host:/)
    assert.equal((await plane.api('POST', '/v1/journal/verify', {})).body.intact, true)
    assert.deepEqual((await plane.api('GET', '/readyz')).body.warnings ?? [], [])
    await plane.stop()
  })
}

test('no key is made where there is no domain, or under a name that is none; nothing is left behind', async (t) => {
  const data = path.join(tempFolder(t), 'd')
  const { code, err } = await making(data)
  assert.equal(code, 2)
  assert.match(err, /there is no domain here[^]*next: \.\/muster key create --help/)
  assert.ok(!fs.existsSync(data))
  assert.equal((await making(data, {}, 'a b')).code, 2)
})
