import assert from 'node:assert/strict'
import { test } from 'node:test'
import { leaveFor, openModuleTurns, ownOfThread, sharedByThreads } from './pkcs11-turns.ts'

const open = () => {
  const shared = sharedByThreads()
  const [one, other] = [ownOfThread(1), ownOfThread(2)]
  return { shared, one, turns: openModuleTurns(shared, one), others: openModuleTurns(shared, other) }
}

test('a thread does not end the module while another one is inside, and does afterwards', () => {
  const { turns, others } = open()
  let ended = 0
  turns.inside(() => others.ifAlone(() => ended++))
  assert.equal(ended, 0)
  assert.throws(() =>
    turns.inside(() => {
      throw new Error('the token has failed')
    }),
  )
  others.ifAlone(() => ended++)
  assert.equal(ended, 1)
})

test('a thread that was terminated inside is no longer inside once it has returned', () => {
  const { shared, one, turns, others } = open()
  let ended = 0
  turns.inside(() => {
    leaveFor(shared, one)
    others.ifAlone(() => ended++)
  })
  assert.equal(ended, 1)
  turns.locked(() => {
    leaveFor(shared, one)
    others.ifAlone(() => ended++)
  })
  assert.equal(ended, 2)
})
