// A token has one user, however many ask at once (ruling 5), and strangers are paid for out of a budget (ruling 2).

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeCsr } from '#pki/csr.ts'
import { generateKey, spkiHash } from '#pki/keys.ts'
import { withPeer } from '../peers/peer.ts'
import { eventually, within } from '../process/eventually.ts'
import { openFakeTime } from '../process/fake-time.ts'
import type { NodeTarget } from '../process/node-call.ts'
import type { Reply } from '../process/operator-call.ts'
import { journalEntries, newSecret, targetByAddress } from '../process/plane-records.ts'
import { rawNode } from '../process/raw-node.ts'
import { readyCall } from '../process/ready-call.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'

const rounds = process.env['MUSTER_LONG'] === '1' ? 100 : 3
const callers = 200

type Attempt = { readonly keyHash: string; readonly reply: Reply }

/** On a busy machine the plane cuts the first connections, which have asked nothing, before the last are made. They are made again. */
const allConnected = async <Request>(requests: readonly Request[], target: NodeTarget, tries = 5) => {
  const connect = async (request: Request) => ({ ...request, call: await readyCall(target, null) })
  let ready = await Promise.all(requests.map(connect))
  for (let again = 1; ready.some(({ call }) => !call.isOpen()); again++) {
    assert.ok(again < tries, 'connections are cut before all are made')
    ready = await Promise.all(ready.map(async (one) => (one.call.isOpen() ? one : connect(one))))
  }
  return ready
}

/** All callers are connected, each with its own key, and the plane is held until all have asked: it meets them at once. */
const askAllAtOnce = async (plane: Plane, target: NodeTarget, secret: string): Promise<readonly Attempt[]> => {
  const requests = Array.from({ length: callers }, () => {
    const key = generateKey('ed25519')
    return {
      keyHash: spkiHash(key.spki),
      body: { method: 'token', enrollment_token: secret, csr: makeCsr(key, 'node') },
    }
  })
  const ready = await allConnected(requests, target)
  plane.signal('SIGSTOP')
  const asked = ready.map(({ keyHash, body, call }) => ({ keyHash, ...call.start('POST', '/v1/enroll', body) }))
  await within('everybody to have asked', 30_000, Promise.all(asked.map(({ sent }) => sent)))
  plane.signal('SIGCONT')
  return Promise.all(asked.map(async ({ keyHash, reply }) => ({ keyHash, reply: await reply })))
}

/** A refusal is answered first and journaled right after. */
const refusalsJournaled = async (plane: Plane, count: number, node?: string): Promise<void> => {
  const query = { type: 'refused', ...(node === undefined ? {} : { node }) }
  const refusals = await eventually('every refusal to be journaled', async () => {
    const entries = await journalEntries(plane, query)
    return entries.length >= count && entries
  })
  assert.equal(refusals.length, count)
}

test(`${callers} callers with one token, each with its own key, ${rounds} times: one wins, the journal says who`, async (t) => {
  const plane = await startPlane(t)
  const set = await plane.muster(
    ...['domain', 'set', 'strangersPerMinute=100000', 'strangersPerMinutePerSource=100000'],
  )
  assert.equal(set.code, 0, set.stderr)
  const target = await targetByAddress(plane)
  const winners = new Map<string, string>()
  for (let round = 0; round < rounds; round++) {
    const node = `prize-${round}`
    const attempts = await askAllAtOnce(plane, target, await newSecret(plane, node))
    const won = attempts.filter(({ reply }) => reply.status === 200)
    assert.equal(won.length, 1, `round ${round}: ${won.length} callers were told that they had won`)
    for (const { reply } of attempts)
      if (reply.status !== 200) assert.deepEqual([reply.status, reply.body.code], [403, 'TOKEN_USED'])
    winners.set(node, won[0]?.keyHash ?? '')

    const [entry, ...more] = await journalEntries(plane, { node, type: 'host.enrolled' })
    assert.deepEqual(more, [], `round ${round}: more than one enrollment was journaled`)
    assert.equal(entry.body.key, `SHA256:${won[0]?.keyHash}`)
    await refusalsJournaled(plane, callers - 1, node)
  }

  const enrolled = await journalEntries(plane, { type: 'host.enrolled' })
  assert.deepEqual(new Map(enrolled.map(({ node, body }) => [node, String(body.key).replace('SHA256:', '')])), winners)
  assert.equal(new Set(enrolled.map(({ token }) => token)).size, rounds)
  const verified = await plane.muster('journal', 'verify')
  assert.equal(verified.code, 0, verified.stdout)
})

test('beyond their budget anonymous callers get a retry time and are counted in one entry; a valid token gets in at once', async (t) => {
  const library = withPeer(t, 'faketime')
  if (library === null) return
  // The budget's minute is one of the monotonic clock, so this plane's goes with the test as well.
  const time = openFakeTime(tempFolder(t), library)
  const plane = await startPlane(t, { env: { ...time.env, FAKETIME_DONT_FAKE_MONOTONIC: '0' } })
  // All of them come from one address, which gets a quarter of the budget by default.
  await plane.api('PATCH', '/v1/domain', { set: { strangersPerMinutePerSource: 100 } })
  const target = await targetByAddress(plane)
  const secrets = await Promise.all(['gpu-001', 'gpu-002'].map((node) => newSecret(plane, node)))
  const strangers = async (count: number): Promise<readonly Reply[]> =>
    Promise.all(Array.from({ length: count }, () => rawNode(target).enrollByToken(`enroll_${'x'.repeat(43)}`)))

  const answers = await strangers(100)
  assert.deepEqual(new Set(answers.map(({ body }) => body.code)), new Set(['TOKEN_INVALID']))
  const rateLimited = await strangers(40)
  for (const { status, body, headers } of rateLimited) {
    assert.deepEqual([status, body.code], [429, 'RATE_LIMITED'])
    const seconds = Number(headers['retry-after'])
    assert.ok(seconds >= 1 && seconds <= 60, `Retry-After: ${headers['retry-after']}`)
  }
  for (const secret of secrets) {
    const invited = rawNode(target)
    assert.equal((await invited.enrollByToken(secret)).status, 200)
    assert.equal((await invited.confirm()).status, 200)
  }
  // Within the budget every refusal is an entry; beyond it none is.
  await refusalsJournaled(plane, 100)
  assert.deepEqual(await journalEntries(plane, { type: 'refusals.counted' }), [])

  time.advance(61_000)
  const counted = await eventually(
    'the entry that counts them',
    async () => {
      const entries = await journalEntries(plane, { type: 'refusals.counted' })
      return entries.length > 0 && entries
    },
    { withinMs: 30_000, everyMs: 100 },
  )
  assert.deepEqual(
    counted.map(({ body }) => body),
    [{ callers: 'strangers', count: 40, sources: 1 }],
  )
  const [again] = await strangers(1)
  assert.equal(again?.body.code, 'TOKEN_INVALID')
})
