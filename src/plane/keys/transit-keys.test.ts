import assert from 'node:assert/strict'
import { test } from 'node:test'
import { generateKey } from '#pki/keys.ts'
import { IssuerFault } from '#plane/outside/issuer-client.ts'
import { readReply, type VaultReply } from '#plane/outside/vault-reply.ts'
import { systemTimers } from '#platform/timers.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { openTransitKeys } from './transit-keys.ts'

const places = {
  address: 'https://vault.example:8200',
  rootsFile: '',
  login: { kind: 'token' },
  secretFile: null,
  mount: 'transit',
  credentialsFolder: null,
} as const

const setUp = () => {
  const clock = manualClock(0)
  let answer: VaultReply | null = null
  const ask = async (): Promise<VaultReply> => {
    if (answer === null) throw new IssuerFault('vault.example:8200: no connection', 'unreachable', true)
    return answer
  }
  const keys = openTransitKeys({ clock, timers: systemTimers, vault: { ask, close: () => {} } }, places)
  const answers = (status: number): void => void (answer = readReply({ status, json: { errors: [] } }, []))
  return { clock, keys, answers, texts: () => keys.troubles().map(({ text }) => text) }
}

test('a Vault that answers again is not in trouble, also where the key that was to be made is not there', async () => {
  const { clock, keys, answers, texts } = setUp()
  await assert.rejects(keys.make('muster-issuing-1', 'p256'), { trouble: 'away' })
  assert.match(texts().join(), /no connection/)
  answers(404)
  clock.advance(30_000)
  await keys.lookAgain(() => true)
  assert.deepEqual(texts(), [])
})

test('a key that is gone is in trouble until it is not kept any more', async () => {
  const { clock, keys, answers, texts } = setUp()
  const { spki } = generateKey('p256')
  answers(404)
  const signer = keys.signer({ key: 'root', version: 1 }, spki)
  await assert.rejects(async () => signer.sign(Buffer.from('data')), { trouble: 'key' })
  clock.advance(30_000)
  await keys.lookAgain(({ key, version }) => key === 'root' && version === 1)
  assert.match(texts().join(), /the key transit\/keys\/root/)
  clock.advance(30_000)
  await keys.lookAgain(() => false)
  assert.deepEqual(texts(), [])
})
