import assert from 'node:assert/strict'
import { generateKeyPairSync, sign } from 'node:crypto'
import { test } from 'node:test'
import { silentLog, type Log } from '#platform/log.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { verifyAside } from './proof-verifier.ts'

const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const spki = publicKey.export({ format: 'der', type: 'spki' })
const data = Buffer.from('a request')
const signature = sign('sha256', data, privateKey)

test('while the thread fails, proofs are checked here, a bad one is still bad, and the thread is tried again later', async () => {
  const clock = manualClock(0)
  let [asked, warnings] = [0, 0]
  const log: Log = { ...silentLog, warn: () => void warnings++ }
  const verify = verifyAside(
    { clock, log },
    {
      verify() {
        asked++
        return Promise.reject(new Error('no more threads'))
      },
    },
  )
  assert.equal(await verify('ecdsa-sha256', spki, data, signature), true)
  assert.equal(await verify('ecdsa-sha256', spki, Buffer.from('another'), signature), false)
  assert.deepEqual([asked, warnings], [1, 1])
  clock.advance(10_000)
  assert.equal(await verify('ecdsa-sha256', spki, Buffer.from('another'), signature), false)
  assert.deepEqual([asked, warnings], [2, 2])
})

test('what the thread says counts', async () => {
  const verify = verifyAside({ clock: manualClock(0), log: silentLog }, { verify: async () => false })
  assert.equal(await verify('ecdsa-sha256', spki, data, signature), false)
})
