import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { openStore, signerOf, workplace } from '../store/harness.ts'

const cycles = process.env['MUSTER_LONG'] === '1' ? 100 : 4

test(`kill -9 in the middle of commits, ${cycles} times: all that was acknowledged is there and the chain verifies`, async (t) => {
  const { folder } = workplace(t)
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const keyFile = path.join(folder, 'key.pem')
  fs.writeFileSync(keyFile, privateKey.export({ type: 'pkcs8', format: 'pem' }))
  const data = path.join(folder, 'data')
  let acknowledgedInAll = 0
  for (let life = 0; life < cycles; life++) {
    const acknowledged = await commitUntilKilled([data, keyFile, String(life)], 40 + ((life * 97) % 400))
    acknowledgedInAll += acknowledged.length
    const store = await openStore(data, signerOf(privateKey, publicKey))
    for (const id of acknowledged) assert((await store.get('node', id)) !== null, `${id} was acknowledged and is gone`)
    const verification = await store.journal.verify()
    const { registered } = await store.countNodes()
    await store.close()
    assert.deepEqual([verification.kind, verification.entries], ['intact', registered])
  }
  assert(acknowledgedInAll > cycles * 40, 'nothing was going on when the kills came')
})

/** Killed when it has acknowledged that many. A line cut short by the kill was not acknowledged. */
const commitUntilKilled = async (args: readonly string[], enough: number): Promise<readonly string[]> => {
  const program = path.join(import.meta.dirname, 'store-committer.ts')
  const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  let printed = ''
  child.stdout.on('data', (chunk) => {
    printed += String(chunk)
    if (printed.split('\n').length > enough) child.kill('SIGKILL')
  })
  const [code, signal] = await once(child, 'close')
  assert.deepEqual([code, signal], [null, 'SIGKILL'], 'the child ended by itself')
  return printed.split('\n').slice(0, -1)
}
