// Operator keys that end, by the commands people use.

import * as fs from 'node:fs'
import * as path from 'node:path'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { setUpCli } from './cli-setup.ts'

const day = 24 * 3_600_000

test('a key ends when it was said to: listed with its end, told of a week before, refused by name from then on', async (t) => {
  const plane = await setUpCli(t)
  const muster = async (...words: string[]) => {
    const said = await plane.muster(...words)
    assert.equal(said.code, exitCodes.ok, said.err)
    return said
  }
  const made = await muster('key', 'create', 'ci', '--role', 'operator', '--expires', '30d')
  assert.match(made.err, /with role operator, until 20/)
  const file = path.join(plane.folder, 'ci.key')
  fs.writeFileSync(file, made.out, { mode: 0o600 })
  const asCi = () => plane.musterWith({ env: { MUSTER_KEY_FILE: file } }, 'node', 'list')
  const listed = async () => (await muster('key', 'list')).out.split('\n').find((line) => / ci /.test(line)) ?? ''
  const alerts = async () => {
    await plane.keyBook.lookAtAll()
    const { body } = await plane.call('viewer', 'GET', '/v1/alerts')
    return body.alerts.map(({ kind, reason }: { kind: string; reason: string }) => `${kind}: ${reason}`)
  }

  assert.match(await listed(), /in 30d +valid/)
  assert.equal((await asCi()).code, exitCodes.ok)
  assert.deepEqual(await alerts(), [])
  plane.clock.advance(23 * day)
  assert.match((await alerts()).join(), /operator_key_expiring: operator key \S+ \(ci, operator\) expires at 20/)
  assert.equal((await asCi()).code, exitCodes.ok)

  plane.clock.advance(7 * day)
  const refused = await asCi()
  assert.equal(refused.code, exitCodes.notAllowed)
  assert.match(refused.err, /OPERATOR_KEY_EXPIRED: This operator key has expired\.\ndetail: at 20/)
  assert.match(await listed(), /now +expired/)
  assert.deepEqual(await alerts(), [], 'there is nothing left to do')
})

test('--expires takes a duration or a date, and nothing in the past', async (t) => {
  const plane = await setUpCli(t)
  const create = (...words: string[]) => plane.muster('key', 'create', 'ci', '--role', 'viewer', ...words)
  assert.equal((await create('--expires', 'soon')).code, exitCodes.usage)
  for (const outOfRange of ['3s', '9999d']) {
    const refused = await create('--expires', outOfRange)
    assert.equal(refused.code, exitCodes.usage)
    assert.match(refused.err, /a key is made for a minute at least and 3650d at most/)
  }
  const past = await create('--expires', '2001-01-31')
  assert.match(past.err, /SETTING_INVALID[\s\S]*2001-01-31T00:00:00.000Z is in the past/)
  assert.equal((await create('--expires', '2199-01-31', '-o', 'json')).code, exitCodes.ok)
  const both = { name: 'x', role: 'viewer', expires_ms: day, expires_at: '2199-01-31T00:00:00Z' }
  const { status, body } = await plane.call('platform-admin', 'POST', '/v1/keys', both)
  assert.deepEqual([status, body.code], [400, 'REQUEST_INVALID'])
})
