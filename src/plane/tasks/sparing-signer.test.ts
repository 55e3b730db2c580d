import assert from 'node:assert/strict'
import { test } from 'node:test'
import { generateKey } from '#pki/keys.ts'
import { TransitUnavailable } from '#plane/keys/key-unavailable.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { sparingSigner } from './sparing-signer.ts'

test('a signer whose key could not be used rests for a second, and what was signed before is still repeated', async () => {
  const clock = manualClock(0)
  const key = generateKey('ed25519')
  let isAway = false
  const signer = sparingSigner(
    {
      ...key,
      sign: async (data) => {
        if (isAway) throw new TransitUnavailable('away', 'Vault is away', 'Wait')
        return key.sign(data)
      },
    },
    clock,
  )
  const [one, other] = [Buffer.from('one'), Buffer.from('other')]
  const signature = await signer.sign(one)
  isAway = true
  await assert.rejects(async () => signer.sign(other), TransitUnavailable)
  assert.equal(signer.isResting(), true)
  assert.equal(await signer.sign(one), signature)
  clock.advance(1000)
  assert.equal(signer.isResting(), false)
})
