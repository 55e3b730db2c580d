import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeShortCode, nodeMark } from '#domain/recovery/short-code.ts'
import { explanationLines, explanationOf, type IdentityFacts } from './explain.ts'
import type { RecordedEvent } from './events.ts'
import type { StatusFile, StatusTrouble } from './status-file.ts'

const nowMs = Date.UTC(2026, 10, 15, 12)
const at = (ms: number): string => new Date(nowMs + ms).toISOString()
const minute = 60_000
const hour = 60 * minute

const status: StatusFile = {
  version: 1,
  pid: 4711,
  birth: null,
  agent_version: '0.1.0',
  started_at: at(-hour),
  written_at: at(-1000),
  phase: 'running',
  phase_since: at(-hour),
  node_id: 'gpu-001',
  domain: 'example.test',
  profile: 'gpu-cloud',
  vcluster: null,
  certificate: { serial: 'ab12', not_after: at(5 * hour), renew_at: at(-hour), key: 'file' },
  channel: { open: true, since: at(-hour), url: 'wss://plane/v1' },
  plane: { last_exchange: at(-2 * hour), clock_behind_ms: 0 },
  troubles: [],
  outcome: null,
}

test('an output that fails is what is wrong, and its next renewal is what happens next', () => {
  const output = {
    name: 'web',
    place: '/run/outputs/web',
    serial: 'a1',
    not_after: at(2 * hour),
    renew_at: at(hour),
    lists_until: null,
    key_type: 'p256',
    names: [],
    reload: 'nginx',
    failure: 'Reload nginx failed: exit code 1',
  }
  const facts = { stateFolder: '/x', running: true, nowMs, events: [], identity: null, freeBytes: null }
  const { wrong, next, advice } = explanationOf({ ...facts, status: { ...status, outputs: [output] } })
  assert.deepEqual(wrong, ['Output web: Reload nginx failed: exit code 1'])
  assert.ok(next.includes('The leaf of output web is renewed in 1 h.'))
  assert.deepEqual(advice, ['See what is in place for output web: muster agent cert show web'])
  const waiting = { ...output, serial: null, not_after: null, renew_at: null, failure: null }
  const waits = explanationOf({ ...facts, status: { ...status, outputs: [waiting] } })
  assert.deepEqual(waits.wrong, ['Output web: it has no leaf yet'])
})

const full: StatusTrouble = {
  place: 'renewal',
  code: 'disk_full',
  class: 'disk_full',
  text: 'The renewal waits: the disk of /var/lib/muster-agent is full (0 bytes are left).',
  next: 'Make room on the disk of /var/lib/muster-agent; the agent then goes on',
  since: at(-12 * minute),
  attempts: 4,
  next_try_at: at(5 * minute),
  evidence: { errno: 'ENOSPC', path: '/var/lib/muster-agent', free_bytes: 0 },
  correlation: 'c0ffee',
}

const noted = (change: Partial<RecordedEvent>): RecordedEvent => ({
  first: at(-12 * minute),
  at: at(-minute),
  place: 'renewal',
  event: 'failed',
  class: 'disk_full',
  code: 'disk_full',
  text: full.text,
  next: full.next,
  times: 4,
  correlation: 'c0ffee',
  next_try: null,
  evidence: {},
  ...change,
})

const identity: IdentityFacts = {
  node_id: 'gpu-001',
  domain: 'example.test',
  epoch: 2,
  profile: 'gpu-cloud',
  serial: 'ab12',
  recovery: 'key',
}

const given = { stateFolder: '/s', status, running: true, nowMs, events: [], identity, freeBytes: 0 }

test('trouble is explained with its code, its duration, its attempts, its next attempt, the advice and a short code', () => {
  const unreachable: StatusTrouble = {
    ...full,
    place: 'channel',
    code: 'ECONNREFUSED',
    class: 'endpoint_unreachable',
    text: 'Nobody answers.',
    next: 'Check the network',
    next_try_at: at(3_000),
    evidence: {},
    correlation: null,
  }
  const told = explanationOf({
    ...given,
    status: { ...status, channel: { open: false, since: at(-minute), url: null }, troubles: [unreachable, full] },
    events: [noted({ event: 'tried', code: '', text: 'renew the certificate' }), noted({})],
  })
  assert.deepEqual(explanationLines(told).slice(0, -1), [
    'Node gpu-001 of domain example.test, epoch 2, profile gpu-cloud; can come back by its recovery key.',
    'What is wrong:',
    `  disk_full at renewal, begun 12 min ago, met 4 times: ${full.text} (errno ENOSPC, path /var/lib/muster-agent, free_bytes 0) [episode c0ffee]`,
    '  endpoint_unreachable: ECONNREFUSED at channel, begun 12 min ago, met 4 times: Nobody answers.',
    'What happened:',
    `  ${at(-minute)} renewal tried: renew the certificate (4 times, first 12 min ago)`,
    `  ${at(-minute)} renewal failed: disk_full: ${full.text} (4 times, first 12 min ago)`,
    'What happens next:',
    `  channel is tried again in 3 s (${at(3_000)}).`,
    `  renewal is tried again in 5 min (${at(5 * minute)}).`,
    '  Its certificate is valid for 5 h more and renewed now.',
    'What you can do:',
    `  ${full.next}`,
    '  Check the network',
  ])
  const decoded = decodeShortCode(told.code ?? '')
  assert.ok(decoded.kind === 'code')
  assert.equal(decoded.facts.class, 'disk_full')
  assert.equal(decoded.facts.cause, 'ENOSPC')
  assert.equal(decoded.facts.nodeMark, nodeMark('example.test', 'gpu-001'))
  assert.deepEqual(decoded.facts.certificateLeftMs, { from: hour, to: 6 * hour })
  assert.deepEqual(decoded.facts.silentMs, { from: hour, to: 3 * hour })
})

test('an agent that is well says so', () => {
  const told = explanationOf({ ...given, freeBytes: 10 ** 12 })
  assert.deepEqual(told.wrong, ['Nothing: the agent is connected.'])
  assert.deepEqual(told.advice, ['Nothing.'])
})

test('an agent that was off while its certificate expired is distinguished from one that cannot recover', () => {
  const expired = {
    ...status,
    certificate: { serial: 'ab12', not_after: at(-hour), renew_at: at(-9 * hour), key: 'file' },
  }
  const off = explanationOf({ ...given, status: expired, running: false })
  assert.deepEqual(off.wrong, [
    'The agent does not run; it last wrote its status 1 s ago and did not report that it stopped.',
    'cert_expired: its certificate expired 1 h ago.',
  ])
  assert.deepEqual(off.next, ['Nothing, while no agent runs.'])
  const on = explanationOf({ ...given, status: expired })
  assert.deepEqual(on.next, ['It recovers automatically with its recovery key.'])
  const bare = explanationOf({ ...given, status: expired, identity: { ...identity, recovery: 'none' } })
  assert.deepEqual(bare.next, ['It has nothing to recover with: an operator has to let it in again.'])
  const inMemory = { ...expired, certificate: { ...expired.certificate, key: 'memory' } }
  const diskless = explanationOf({ ...given, status: inMemory, identity: null })
  assert.deepEqual(diskless.next, ['It joins again, as it did at its start.'])
  const decoded = decodeShortCode(off.code ?? '')
  assert.equal(decoded.kind === 'code' && decoded.facts.class, 'cert_expired')
})

test('a node that was registered anew is not said to come back by a recovery key that ended with its revocation', () => {
  const unknown: StatusTrouble = {
    ...full,
    place: 'recovery',
    code: 'RECOVERY_UNKNOWN',
    class: null,
    next_try_at: null,
  }
  const told = explanationOf({ ...given, status: { ...status, phase: 'rejoining', troubles: [unknown] } })
  assert.match(explanationLines(told)[0] ?? '', /; can come back by a new token only\.$/)
  assert.deepEqual(told.next, [], 'nothing about a certificate that is not taken')
})

test('an agent that gave up, damaged credentials and an empty folder are explained, too', () => {
  const outcome = {
    kind: 'revoked',
    class: 'identity_revoked_or_fenced' as const,
    code: 'NODE_REVOKED',
    text: 'This node has been revoked.',
    next: 'ask',
  }
  const gone = explanationOf({ ...given, status: { ...status, phase: 'stopped', outcome }, running: false })
  assert.deepEqual(gone.wrong, ['The agent gave up 1 h ago: NODE_REVOKED: This node has been revoked.'])
  assert.deepEqual(gone.advice, ['ask'])
  assert.match(
    explanationLines(gone)[0] ?? '',
    /; it was revoked, and comes back only if an operator registers it anew\.$/,
  )
  const decoded = decodeShortCode(gone.code ?? '')
  assert.ok(decoded.kind === 'code')
  assert.deepEqual([decoded.facts.class, decoded.facts.cause], ['identity_revoked_or_fenced', 'NODE_REVOKED'])
  assert.match(explanationOf({ ...given, identity: 'damaged' }).wrong[0] ?? '', /^state_damaged: /)
  const empty = explanationOf({ ...given, status: null, running: false, identity: null })
  assert.deepEqual(empty.wrong, ['No agent has written its status in /s.'])
  assert.equal(empty.code, null)
})
