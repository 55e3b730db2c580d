// Taking identities away from the command line: what is waited for, what is printed, and what the exit code says.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import type { Membership, Node } from '#domain/core/node.ts'
import { slotOf } from '#domain/core/certificate.ts'
import type { ReceiptView } from '#wire/revocation/receipt-api.ts'
import { nodeRow } from '../fakes/sample-rows.ts'
import { note, read, someCertificate } from '../store/harness.ts'
import { setUpCli, type CliSetup, type Said } from './cli-setup.ts'

const hour = 3_600_000

/** Each with the time its certificate still has. */
const setUp = async (t: TestContext, peers: Readonly<Record<string, number>>) => {
  const plane = await setUpCli(t)
  const nowMs = plane.clock.nowMs()
  const member = (id: string, endsInMs: number): Node => {
    const certificate = someCertificate(`a-${id}`, { spki: `key-of-${id}`, notAfterMs: nowMs + endsInMs })
    const slots = { current: slotOf(certificate), pending: null, retired: null }
    const membership: Membership = { kind: 'active', sinceMs: nowMs, slots }
    const wireguard = { publicKey: `wg-${id}`, address: `fd00::${id}`, endpoint: null }
    return {
      ...nodeRow('active', { id, epoch: 1, hardware: { macs: [], bmcSerial: null } }).value,
      membership,
      wireguard,
    }
  }
  const nodes = Object.entries({ gone: hour, ...peers }).map(([id, endsInMs]) => member(id, endsInMs))
  await plane.store.commit({
    reads: nodes.map(({ id }) => read('node', id, 0)),
    writes: nodes.map((value) => ({ put: 'node', value }) as const),
    entries: [note()],
  })
  const all = ['gone', ...Object.keys(peers)]
  for (const id of all)
    plane.peers.groups.set(
      id,
      all.filter((other) => other !== id),
    )
  plane.sessions.set('gone', [{ number: 7, sinceMs: nowMs, serial: 'a1' }])
  return plane
}

/** No faster than a database answers: its leases are kept by the same clock. */
const pass = async ({ timers }: CliSetup, ms: number, isOver: () => boolean = () => false): Promise<void> => {
  for (let passedMs = 0; passedMs < ms && !isOver(); passedMs += 10) {
    await new Promise((resolve) => setTimeout(resolve, 4))
    timers.advance(10)
  }
}

/** What a command says, while time passes for the plane. */
const patiently = async (plane: CliSetup, said: Promise<Said>): Promise<Said> => {
  let over = false
  void said.finally(() => (over = true))
  await pass(plane, 60_000, () => over)
  return said
}

const json = ({ out }: Said): ReceiptView => JSON.parse(out) as ReceiptView

test('a node without peers is out at once: one replica, its channel, the proof in lines a person can read', async (t) => {
  const plane = await setUp(t, {})
  const revoked = await plane.muster('node', 'revoke', 'gone', '--reason', 'stolen')
  assert.equal(revoked.code, exitCodes.ok, revoked.err)
  const [id] = /[0-9A-Z]{26}/.exec(revoked.out) ?? []
  const lines = revoked.out.split('\n').filter((line) => !line.startsWith('journal'))
  assert.deepEqual(
    lines.map((line) => line.replace(/after \d+ ms/, 'after 0 ms').replace(/1 \(.*\)/, '1 (HOST PID)')),
    [
      'node          gone revoked by operator:the-platform-admin: stolen',
      `receipt       ${id}`,
      'epoch         1',
      'decided       2027-01-15T08:00:00.000Z',
      'effective     2027-01-15T08:00:00.000Z, after 0 ms: nothing is accepted from epoch 1 of gone any more',
      'certificates  denied ca/a-gone',
      'replicas      1 of 1 replica',
      '              replica 1 (HOST PID) decided it, and knew after 0 ms',
      'channels cut  1, the last after 0 ms',
      'peers         0 of 0 peers dropped the key',
      'settled       2027-01-15T08:00:00.000Z',
      '',
    ],
  )
  assert.deepEqual(
    [(await plane.journal('receipt.effective')).length, (await plane.journal('receipt.settled')).length],
    [1, 1],
  )
})

test('peers that are away are named with the end of their certificates; the receipt is settled once they are back', async (t) => {
  const plane = await setUp(t, { p1: hour, p2: hour, p3: 12_000 })
  plane.peers.dropped.set('p1', plane.clock.nowMs() + 40)
  const revoked = await patiently(
    plane,
    plane.muster('node', 'revoke', 'gone', '--reason', 'stolen', '--wait', '6s', '-o', 'json'),
  )
  assert.equal(revoked.code, exitCodes.ok, 'effective is enough')
  const receipt = json(revoked)
  assert.ok(receipt.peers !== null)
  assert.deepEqual([receipt.peers.expected, receipt.peers.confirmed], [3, 1])
  // Time may have passed before it was decided.
  const { last_peer_ms: lastPeerMs } = receipt.latency
  assert.ok(lastPeerMs !== null && lastPeerMs <= 40, `${lastPeerMs} ms`)
  assert.deepEqual(receipt.peers.stragglers, [
    { node: 'p2', deadline: '2027-01-15T09:00:00.000Z' },
    { node: 'p3', deadline: '2027-01-15T08:00:12.000Z' },
  ])
  assert.match(
    revoked.err,
    /effective; some peers are still waited for: \.\/muster receipt show [0-9A-Z]{26} --wait 30s/,
  )
  const [straggling] = await plane.journal('receipt.straggling')
  assert.deepEqual(straggling?.body['nodes'], ['p2', 'p3'])

  const table = await plane.muster('receipt', 'list', '--open')
  assert.match(table.out, new RegExp(`${receipt.id}  gone  revoke  .*  1 of 3 +stolen`))
  plane.peers.dropped.set('p2', plane.clock.nowMs())
  const shown = await plane.muster('receipt', 'show', receipt.id)
  assert.match(shown.out, /^peers +2 of 3 peers dropped the key, the last after \d+ ms\n +p3 is away; its certificate/m)
  // The other never came back.
  await pass(plane, 12_000, () => plane.clock.nowMs() > Date.parse('2027-01-15T08:00:12.000Z'))
  await plane.receipts.resumeOpen(plane.store)
  const last = json(await plane.muster('receipt', 'show', receipt.id, '-o', 'json'))
  assert.deepEqual([last.peers?.confirmed, last.peers?.ended, last.peers?.stragglers], [2, ['p3'], []])
  assert.notEqual(last.settled_at, null)
  assert.equal(last.journal, receipt.journal)
  assert.equal(
    (await plane.muster('receipt', 'list', '--open')).err,
    'no receipt is open; all: ./muster receipt list\n',
  )
  assert.equal((await plane.journal('receipt.settled')).length, 1)
})

test('without waiting the answer is what is known; with --wait it comes when the last peer is done', async (t) => {
  const plane = await setUp(t, { p1: hour, p2: hour })
  const command = ['node', 'quarantine', 'gone', '--reason', 'odd', '--no-wait', '-o', 'json'] as const
  const receipt = json(await plane.muster(...command))
  assert.deepEqual([receipt.kind, receipt.settled_at, receipt.peers?.stragglers.length], ['quarantine', null, 2])
  const waiting = plane.muster('receipt', 'show', receipt.id, '--wait', '5s', '-o', 'json')
  // One is no member any more, which is as good.
  const row = await plane.store.get('node', 'p2')
  assert.ok(row !== null)
  await plane.store.commit({
    reads: [read('node', 'p2', row.version)],
    writes: [{ put: 'node', value: { ...row.value, membership: nodeRow('revoked').value.membership } }],
    entries: [note('p2')],
  })
  plane.peers.dropped.set('p1', plane.clock.nowMs())
  const done = json(await patiently(plane, waiting))
  assert.deepEqual([done.peers?.confirmed, done.peers?.left, done.peers?.stragglers], [1, 1, []])
})

test('mistakes are found before anything is taken away', async (t) => {
  const plane = await setUp(t, {})
  const wrong = await plane.muster('node', 'revoke', 'gone', '--reason', 'stolen', '--wait', 'long')
  assert.equal(wrong.code, exitCodes.usage)
  assert.equal((await plane.store.get('node', 'gone'))?.value.membership.kind, 'active')
  const missing = await plane.muster('receipt', 'show', '01KA2Q7Z6W3M8X9Y0Z1A2B3C4D')
  assert.deepEqual(
    [missing.code, missing.err.split('\n')[0]],
    [exitCodes.notFound, 'error RECEIPT_NOT_FOUND: There is no receipt of that id.'],
  )
})
