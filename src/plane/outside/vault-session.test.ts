// The life of a login by a clock that a test moves; what a real Vault answers is in test/peers/vault-logins.test.ts.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { manualTimers } from '../../../test/fakes/manual-timers.ts'
import { IssuerFault } from './issuer-client.ts'
import type { VaultLogin } from './vault-login.ts'
import type { VaultReply, VaultRequest } from './vault-reply.ts'
import { openVaultSession } from './vault-session.ts'

const hour = 3_600_000
const second = 1000
const approle: VaultLogin = { kind: 'approle', mount: 'approle', roleId: 'role-id-of-the-test', secretId: 'secret' }

const reply = (status: number, more: Partial<VaultReply> = {}): VaultReply => ({
  ...{ status, data: null, auth: null, said: `status ${status}`, ...more },
})
const loggedIn = (token: string, seconds: number, renewable = true): VaultReply =>
  reply(200, { auth: { client_token: token, lease_duration: seconds, renewable } })

/** A Vault that answers as the test says; it counts what it is asked. */
const session = (login: VaultLogin, answer: (request: VaultRequest, token: string | null) => VaultReply) => {
  const clock = manualClock(Date.UTC(2026, 10, 1))
  const timers = manualTimers(clock)
  const asked: string[] = []
  const opened = openVaultSession({
    clock,
    timers,
    login,
    ask: async (request, token) => {
      asked.push(request.path)
      return answer(request, token)
    },
  })
  /** Time passes second by second, and what was asked on the way is answered. */
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 10 * second) {
      timers.advance(Math.min(10 * second, ms - passed))
      for (let turn = 0; turn < 8; turn++) await Promise.resolve()
    }
  }
  return { ...opened, clock, asked, pass }
}

test('a login is renewed at half of its life, as the same login', async () => {
  const it = session(approle, () => loggedIn('one', 3600))
  assert.deepEqual(it.condition(), { kind: 'none' })
  assert.equal(await it.token(), 'one')
  await it.pass(hour / 2 - 20 * second)
  assert.deepEqual(it.asked, ['auth/approle/login'])
  await it.pass(40 * second)
  assert.deepEqual(it.asked, ['auth/approle/login', 'auth/token/renew-self'])
  assert.equal(it.condition().kind, 'good')
  await it.pass(10 * hour)
  assert.equal(it.asked.filter((path) => path.endsWith('login')).length, 1)
  it.close()
})

test('it is replaced when a renewal gives less than it had', async () => {
  let logins = 0
  const it = session(approle, ({ path }) =>
    path.endsWith('login') ? loggedIn(`login ${++logins}`, 3600) : loggedIn(`login ${logins}`, 600),
  )
  assert.equal(await it.token(), 'login 1')
  await it.pass(hour / 2 + 20 * second)
  assert.equal(await it.token(), 'login 2')
  it.close()
})

test('one that cannot be renewed is replaced, too', async () => {
  let logins = 0
  const it = session(approle, () => loggedIn(`login ${++logins}`, 3600, false))
  await it.token()
  await it.pass(hour / 2 + 20 * second)
  assert.equal(await it.token(), 'login 2')
  assert.deepEqual(it.asked, ['auth/approle/login', 'auth/approle/login'])
  it.close()
})

test('its end is announced when a third of its life is left, with the reason, and it is used until then', async () => {
  let isAway = false
  const it = session(approle, () => {
    if (isAway) throw new IssuerFault('vault.example:8200: no connection (ECONNREFUSED)', 'unreachable', true)
    return loggedIn('one', 3600)
  })
  await it.token()
  const endsMs = it.clock.nowMs() + hour
  isAway = true
  await it.pass((hour * 2) / 3 - 20 * second)
  assert.equal(it.condition().kind, 'good')
  await it.pass(30 * second)
  const why =
    'the login by AppRole at auth/approle (role ID role-id-...) failed: vault.example:8200: no connection (ECONNREFUSED)'
  assert.deepEqual(it.condition(), { kind: 'ending', untilMs: endsMs, why })
  assert.equal(await it.token(), 'one')
  await it.pass(hour / 3)
  assert.equal(it.condition().kind, 'failed')
  await assert.rejects(it.token(), { message: why, isUndone: true })
  isAway = false
  await it.pass(10 * second)
  assert.equal(await it.token(), 'one')
  assert.equal(it.condition().kind, 'good')
  it.close()
})

test('a refused login is tried ever more seldom, whatever waits for it: Vault locks who is refused too often', async () => {
  const it = session(approle, () => reply(400, { said: 'invalid role or secret ID' }))
  for (let waited = 0; waited < 600; waited += 10) {
    await assert.rejects(it.token(), /was refused: invalid role or secret ID/)
    await it.pass(10 * second)
  }
  assert.ok(it.asked.length <= 16, String(it.asked.length))
  it.close()
})

test('of many requests at once one logs in', async () => {
  const it = session(approle, () => loggedIn('one', 3600))
  assert.deepEqual(new Set(await Promise.all([it.token(), it.token(), it.token()])), new Set(['one']))
  assert.equal(it.asked.length, 1)
  it.close()
})

test('a token that Vault does not know any more is not used again; one that replaced it meanwhile is', async () => {
  let logins = 0
  const it = session(approle, () => loggedIn(`login ${++logins}`, 3600))
  const first = await it.token()
  it.reject(first)
  assert.equal(await it.token(), 'login 2')
  it.reject(first)
  assert.equal(await it.token(), 'login 2')
  it.close()
})

test('an answer that is no login, or renews another one, is none', async () => {
  for (const auth of [
    null,
    {},
    { client_token: '', lease_duration: 5 },
    { client_token: 'x', lease_duration: 'long' },
  ]) {
    const it = session(approle, () => reply(200, { auth }))
    await assert.rejects(it.token(), /something that is none/)
    it.close()
  }
  const it = session(approle, ({ path }) => loggedIn(path.endsWith('login') ? 'one' : 'two', 3600))
  await it.token()
  await it.pass(hour / 2 + 30 * second)
  const before = it.asked.length
  assert.ok(before >= 2)
  assert.equal(await it.token(), 'one')
  it.close()
})

test('a token that does not end is neither renewed nor announced', async () => {
  const login: VaultLogin = { kind: 'token', where: '/run/token', read: () => 'one' }
  const it = session(login, () => reply(200, { data: { ttl: 0, creation_ttl: 0, renewable: false } }))
  assert.equal(await it.token(), 'one')
  await it.pass(24 * hour)
  assert.deepEqual([it.asked, it.condition()], [['auth/token/lookup-self'], { kind: 'good', untilMs: null }])
  it.close()
})

test('a token that is half over when the plane starts is renewed at once, by its whole life', async () => {
  const login: VaultLogin = { kind: 'token', where: '/run/token', read: () => 'one' }
  const it = session(login, ({ path }) =>
    path.endsWith('lookup-self')
      ? reply(200, { data: { ttl: 1000, creation_ttl: 3600, renewable: true } })
      : loggedIn('one', 3600),
  )
  await it.token()
  await it.pass(10 * second)
  assert.deepEqual(it.asked, ['auth/token/lookup-self', 'auth/token/renew-self'])
  it.close()
})

test('a token that comes near its longest life is renewed no more, and its end is announced in time', async () => {
  const login: VaultLogin = { kind: 'token', where: '/run/token', read: () => 'one' }
  let endsMs = 0
  const it = session(login, ({ path }) => {
    const left = Math.min(hour, endsMs - it.clock.nowMs()) / 1000
    return path.endsWith('lookup-self')
      ? reply(200, { data: { ttl: left, creation_ttl: 3600, renewable: true } })
      : loggedIn('one', left)
  })
  endsMs = it.clock.nowMs() + 3 * hour
  await it.token()
  await it.pass(3 * hour - hour / 3 - 30 * second)
  assert.equal(it.condition().kind, 'good')
  const renewals = it.asked.length
  await it.pass(60 * second)
  const condition = it.condition()
  assert.ok(condition.kind === 'ending')
  assert.ok(Math.abs(condition.untilMs - endsMs) < 20 * second)
  assert.match(condition.why, /the token in \/run\/token cannot be renewed any more/)
  assert.ok(it.asked.length - renewals <= 1 && renewals < 8, it.asked.join())
  it.close()
})

test('a login near its longest life that has no successor is announced in time, too', async () => {
  let endsMs = Infinity
  const it = session(approle, ({ path }) => {
    if (path.endsWith('login') && endsMs < Infinity) return reply(400, { said: 'invalid role or secret ID' })
    if (endsMs === Infinity) endsMs = it.clock.nowMs() + 2 * hour
    return loggedIn('one', Math.min(hour, endsMs - it.clock.nowMs()) / 1000)
  })
  await it.token()
  await it.pass(2 * hour - hour / 3 - 30 * second)
  assert.equal(it.condition().kind, 'good')
  await it.pass(60 * second)
  const condition = it.condition()
  assert.ok(condition.kind === 'ending')
  assert.ok(Math.abs(condition.untilMs - endsMs) < 20 * second)
  assert.match(condition.why, /was refused: invalid role or secret ID/)
  it.close()
})
