// `muster signer`, and how the statement keys get from a plane into the folder of root: against a real operator listener.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { keysIn, layDown } from '#cli/agent/agent-trust.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { generateKey } from '#pki/keys.ts'
import { toPem } from '#pki/pem.ts'
import type { SignerListAnswer } from '#wire/tasks/signer-api.ts'
import { testTrust } from '../fakes/helped-host.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { setUpCli } from './cli-setup.ts'

test('signers are listed, rotated and withdrawn; what cannot be undone has a plan', async (t) => {
  const plane = await setUpCli(t)
  const signers = async () =>
    (JSON.parse((await plane.muster('signer', 'list', '-o', 'json')).out) as SignerListAnswer).signers
  const key = (await signers())[0]?.key ?? ''
  const table = await plane.muster('signer', 'list')
  const [header, line] = table.out.split('\n')
  assert.match(header ?? '', /^KEY +VERSION +STATE +SINCE +UNTIL +NODES$/)
  assert.match(line ?? '', new RegExp(`^${key} +1 +signing +.* - +0$`))
  assert.match(table.err, /0 of 0 nodes that take tasks have it/)

  assert.equal((await plane.muster('signer', 'rotate')).code, exitCodes.ok)
  assert.deepEqual((await signers()).map(({ state }) => state).sort(), ['next', 'signing'])
  const twice = await plane.muster('signer', 'rotate')
  assert.match(twice.err, /SIGNER_ROTATING[^]*rotate --now/)
  const planned = await plane.muster('signer', 'rotate', '--now', '--plan')
  assert.match(planned.out, /signs at once/)
  assert.equal((await plane.muster('signer', 'rotate', '--plan')).code, exitCodes.usage)
  const id = /^plan +(\S+)$/m.exec(planned.out)?.[1] ?? ''
  assert.equal((await plane.muster('signer', 'rotate', '--apply', id)).code, exitCodes.ok)
  assert.deepEqual((await signers()).map(({ state }) => state).sort(), ['grace', 'signing'])

  assert.equal((await plane.muster('signer', 'withdraw', key)).code, exitCodes.usage)
  assert.equal((await plane.muster('signer', 'withdraw', 'beef', '--reason', 'stolen')).code, exitCodes.usage)
  assert.equal((await plane.muster('signer', 'withdraw', key, '--reason', 'stolen')).code, exitCodes.ok)
  assert.equal((await signers()).find((one) => one.key === key)?.reason, 'stolen')
  assert.equal((await plane.muster('signer', 'rotate', '--back')).code, exitCodes.refused)
  assert.match((await plane.muster('ca', 'bundle', '--statements')).out, /^-----BEGIN PUBLIC KEY-----/)
})

test('statement keys are laid down whole, where only root can change them, or not at all', (t) => {
  const folder = tempFolder(t)
  const file = path.join(folder, 'etc', 'statement-keys.pem')
  const pems = (['p256', 'ed25519'] as const).map((type) => toPem('PUBLIC KEY', generateKey(type).spki))
  const keys = keysIn(pems.join('\n'))
  assert.equal(layDown(file, keys, testTrust), null)
  assert.equal(fs.readFileSync(file, 'utf8'), pems.join(''))
  assert.equal(fs.statSync(file).mode & 0o777, 0o644)
  assert.equal(layDown(file, keys.slice(1), testTrust), null)
  assert.equal(fs.readFileSync(file, 'utf8'), pems[1])

  fs.chmodSync(path.dirname(file), 0o777)
  assert.match(layDown(file, keys, testTrust) ?? '', /can be written by other users/)
  assert.equal(fs.readFileSync(file, 'utf8'), pems[1])
  const certificate = toPem('CERTIFICATE', Buffer.alloc(8))
  const nine = Array.from({ length: 9 }, () => pems[0]).join('')
  for (const wrong of ['', 'no keys', certificate, nine, toPem('PUBLIC KEY', Buffer.alloc(8))])
    assert.throws(() => keysIn(wrong), /The file has no statement keys/)
})
