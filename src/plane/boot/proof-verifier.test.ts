import assert from 'node:assert/strict'
import { generateKeyPairSync, sign } from 'node:crypto'
import { test } from 'node:test'
import { silentLog, type Log } from '#platform/log.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { openProofVerifier, verifyAside, verifyTogether } from './proof-verifier.ts'

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

/** Every turn is as long as `turnMs`. */
const turnsOf = (turnMs: number) => {
  const clock = manualClock(0)
  const turns: (() => void)[] = []
  const timers = { soon: (run: () => void) => void turns.push(run) }
  const turn = (): void => {
    clock.advance(turnMs)
    for (const run of turns.splice(0)) run()
  }
  return { core: { clock, timers, log: silentLog }, turn, left: () => turns.length }
}

test('without a thread checks that come while the loop is busy are made in one turn, sixteen at most', async () => {
  const { core, turn, left } = turnsOf(1)
  const verify = verifyTogether(core)
  let answered = 0
  const checks = Array.from({ length: 20 }, async (_, at) => {
    const isProven = await verify('ecdsa-sha256', spki, at === 3 ? Buffer.from('another') : data, signature)
    answered++
    return isProven
  })
  const settled = async (): Promise<number> => {
    await new Promise((resolve) => setImmediate(resolve))
    return answered
  }
  turn()
  assert.equal(await settled(), 0)
  turn()
  turn()
  assert.equal(await settled(), 16)
  turn()
  assert.deepEqual(
    await Promise.all(checks),
    Array.from({ length: 20 }, (_, at) => at !== 3),
  )
  assert.equal(left(), 0)
})

test('without a thread a check that comes alone is made in the next turn, and a fault is no proof', async () => {
  const { core, turn } = turnsOf(0)
  const proofs = openProofVerifier(core, false)
  const proven = proofs.verify('ecdsa-sha256', spki, data, signature)
  turn()
  assert.equal(await proven, true)
  const failed = proofs.verify('no such algorithm' as 'ecdsa-sha256', spki, null as never, signature)
  turn()
  await assert.rejects(async () => failed)
  await proofs.close()
})
