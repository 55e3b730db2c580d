// What one caller without a proof may cost a plane (weaknesses of the API in the hostile tests, A6).

import assert from 'node:assert/strict'
import * as http from 'node:http'
import { test } from 'node:test'
import { challengeRoutes } from '#plane/identity/identity-routes.ts'
import type { StatementParts } from '#plane/identity/request-proofs.ts'
import { openCallerBudget } from '#plane/limits/caller-budget.ts'
import { systemRandom } from '#platform/random.ts'
import { manualClock } from '../fakes/manual-clock.ts'
import { setUpOperatorServer, type OperatorSetup } from './operator-setup.ts'

type Reply = { readonly status: number; readonly body: string }

/** Over loopback HTTP, with the body as it is written here. */
const send = (plane: OperatorSetup, key: string, method: string, path: string, body?: string): Promise<Reply> =>
  new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${key}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    }
    const request = http.request(`${plane.listener.httpUrl}${path}`, { method, headers }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString('utf8') }),
      )
    })
    request.on('error', reject)
    request.end(body)
  })

test('A6: a secret in the name of an operator key is refused, and neither kept nor shown', async (t) => {
  const plane = await setUpOperatorServer(t)
  const secret = `muster_key_${'s'.repeat(43)}`
  const reply = await plane.call('platform-admin', 'POST', '/v1/keys', { name: secret, role: 'viewer' })
  assert.deepEqual([reply.status, reply.body.code], [400, 'REQUEST_INVALID'])
  assert.match(reply.body.detail, /^name holds a secret; nothing was stored/)
  assert.equal(JSON.stringify(reply.body).includes(secret), false)
  assert.equal(JSON.stringify((await plane.call('viewer', 'GET', '/v1/keys')).body).includes(secret), false)
})

test('a body that names a key twice is refused, and nothing is done', async (t) => {
  const plane = await setUpOperatorServer(t)
  const twice = '{"name":"bob","role":"viewer","role":"platform-admin"}'
  const reply = await send(plane, plane.keys['platform-admin'], 'POST', '/v1/keys', twice)
  assert.equal(reply.status, 400)
  assert.match(reply.body, /REQUEST_INVALID.*not acceptable JSON/)
  const { keys } = (await plane.call('viewer', 'GET', '/v1/keys')).body
  assert.equal(keys.length, 3)
})

test('a caller that guesses operator keys is slowed down, and the operator beside it is not', async (t) => {
  const plane = await setUpOperatorServer(t)
  const whoAmI = (key: string) => send(plane, key, 'GET', '/v1/whoami')
  assert.equal((await whoAmI(plane.keys.operator)).status, 200)
  const statuses: number[] = []
  for (let guess = 0; guess < 70; guess++)
    statuses.push((await whoAmI(`muster_key_${String(guess).padStart(43, 'g')}`)).status)
  assert.deepEqual([...new Set(statuses.slice(0, 60))], [401])
  assert.deepEqual([...new Set(statuses.slice(60))], [429])
  assert.equal((await whoAmI(plane.keys.operator)).status, 200)
  assert.equal((await plane.call('viewer', 'GET', '/v1/whoami')).status, 200)
})

test('challenges beyond the limit of one source are refused before anything is signed, and others get theirs', async () => {
  const clock = manualClock(0)
  let signatures = 0
  const recovery = {
    signStatement: () => {
      signatures++
      return Buffer.alloc(64)
    },
    isOurStatement: () => true,
  } as unknown as StatementParts['recovery']
  const challenges = openCallerBudget(clock, () => ({ perMinute: 100, perMinutePerSource: 10 }))
  const [route] = challengeRoutes({ clock, random: systemRandom }, { recovery, domainName: 'test.example' }, challenges)
  assert.ok(route !== undefined)
  const ask = async (source: string): Promise<string> => {
    const outcome = await route.handle({
      principal: { kind: 'anonymous', source },
      params: {},
      query: {},
      body: { nonce: 'n' },
      correlation: 'c',
      evidence: null,
    })
    return outcome.kind === 'refused' ? outcome.code : outcome.kind
  }
  const outcomes = []
  for (let i = 0; i < 50; i++) outcomes.push(await ask('192.0.2.1'))
  assert.deepEqual([outcomes.filter((one) => one === 'answer').length, signatures], [10, 10])
  assert.equal(outcomes.at(-1), 'RATE_LIMITED')
  assert.equal(await ask('192.0.2.2'), 'answer')
})
