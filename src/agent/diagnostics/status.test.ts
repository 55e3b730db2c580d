import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StatusFile } from './status-file.ts'
import { explain, overlayTroubles } from './status.ts'

const nowMs = Date.UTC(2026, 10, 15, 12)
const at = (ms: number): string => new Date(nowMs + ms).toISOString()
const hour = 3_600_000

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
  certificate: { serial: 'ab12', not_after: at(23 * hour), renew_at: at(13 * hour), key: 'file' },
  channel: { open: true, since: at(-hour), url: 'wss://plane/v1' },
  troubles: [],
  outcome: null,
}

test('a healthy agent is described in three sentences', () => {
  const told = explain(status, true, nowMs)
  assert.equal(told.healthy, true)
  assert.deepEqual(told.sentences, [
    'The agent (process 4711) is connected to wss://plane/v1, for 1 h.',
    'It is node gpu-001 of domain example.test, profile gpu-cloud, in no vCluster.',
    'Its certificate ab12 is valid for 23 h, is renewed in 13 h, and its key is in a file.',
  ])
})

test('R-101: the root that the plane is known by and the one that the certificate is under are told apart', () => {
  const trust = { plane: ['aa', 'bb'], recovery: ['cc'], certificate: 'dd' }
  assert.deepEqual(explain({ ...status, trust }, true, nowMs).sentences.slice(3), [
    'It knows the plane by root sha256:aa, sha256:bb, and its recovery listener by root sha256:cc.',
    'Its own certificate is under root sha256:dd.',
  ])
})

test('the status names the outputs of the node and what is wrong with them, and what the host lacks', () => {
  const output = {
    name: 'web',
    place: '/run/outputs/web',
    serial: 'a1',
    not_after: at(2 * hour),
    renew_at: at(hour),
    lists_until: null,
    key_type: 'p256',
    names: [],
    reload: null,
    failure: null,
  }
  const db = {
    ...output,
    name: 'db',
    serial: null,
    not_after: null,
    failure: 'The disk of /run is full: make room there',
  }
  const helper = { there: false, lacks: ['outputs in directories of other users', 'reloads by the helper'] }
  const { sentences } = explain({ ...status, outputs: [output, db], helper }, true, nowMs)
  assert.deepEqual(sentences.slice(3), [
    'Output web is in /run/outputs/web: leaf a1, valid for 2 h.',
    'Output db has no leaf in place.',
    'Output db is not as it should be: The disk of /run is full: make room there',
    'There is no helper on this host; it has no outputs in directories of other users, no reloads by the helper.',
  ])
})

test('a helper that starts services at the word of the agent is named, and what is refused for want of a statement has its own next step', () => {
  const helper = { there: true, lacks: [] }
  const said = (overlays: 'signed' | 'unsigned'): boolean =>
    explain({ ...status, helper: { ...helper, overlays } }, true, nowMs).sentences.some((line) =>
      /no statement keys are pinned here/.test(line),
    )
  assert.deepEqual([said('unsigned'), said('signed')], [true, false])
  const next = (error: string): string => {
    const worker = { name: 'worker', state: 'failed', restarts: 0, pid: null, error }
    const overlay = { vcluster_revision: 3, applied: true, detail: null, services: [worker], drift: [] }
    return overlayTroubles({ ...status, overlay })[0]?.next ?? ''
  }
  assert.match(next('ended with exit code 1'), /^Correct what service worker needs/)
  assert.match(next('STATEMENT_NOT_SIGNED: by another key'), /muster agent trust --statements FILE$/)
  assert.match(next('STATEMENT_MISSING: none yet'), /The agent fetches a statement/)
  assert.match(next('NOT_KEPT: ENOSPC'), /See the disk/)
})

test('the status names what the node has to run, and what has drifted', () => {
  const services = [
    { name: 'chronyd', state: 'running', restarts: 0, pid: 17 },
    { name: 'worker', state: 'failed', restarts: 4, pid: null },
  ]
  const overlay = { vcluster_revision: 3, applied: true, detail: null, services, drift: ['file etc/app.conf: changed'] }
  const told = (changes: Partial<NonNullable<StatusFile['overlay']>>): readonly string[] =>
    explain({ ...status, vcluster: 'training', overlay: { ...overlay, ...changes } }, true, nowMs).sentences.slice(
      2,
      -1,
    )
  assert.deepEqual(told({}), [
    'It runs overlay revision 3: chronyd (running, process 17), worker (failed, restarted 4 times).',
    'service_failed: worker: not running',
    'config_drift: what was applied is not what is there any more: file etc/app.conf: changed.',
  ])
  const why = { error: 'ended with exit code 1', output: ['no such table'], unapplied: ['limits.cpus'] }
  const worker = { name: 'worker', state: 'failed', restarts: 0, pid: null, ...why }
  const check = { name: 'gpus', state: 'failed', line: '7 of 8 GPUs', since: at(0) }
  const kernel = { name: 'kernel', state: 'not_run', line: 'needs the helper', since: at(0) }
  assert.deepEqual(told({ services: [worker], drift: [], checks: [check, kernel] }), [
    'It runs overlay revision 3: worker (failed, without limits.cpus).',
    'service_failed: worker: ended with exit code 1 | no such table',
    'unhealthy: check gpus: 7 of 8 GPUs',
    'Check kernel was not made: needs the helper.',
  ])
  assert.deepEqual(told({ applied: false, detail: 'no room', services: [], drift: [] }), [
    'It does not run overlay revision 3 as it should: no room; services: none.',
  ])
  assert.deepEqual(told({ vcluster_revision: 0, services: [], drift: [] }), [
    'It runs the overlay of maintenance mode: no services.',
  ])
})

test('trouble comes with its code, how often, and what to do', () => {
  const troubles = [
    {
      place: 'enrollment' as const,
      code: 'ALREADY_ACTIVE',
      text: 'Taken.',
      next: 'wait',
      since: at(-60_000),
      attempts: 4,
      next_try_at: at(5_000),
    },
  ]
  const enrolling = { ...status, phase: 'enrolling' as const, node_id: null, certificate: null, troubles }
  const { healthy, sentences } = explain(enrolling, true, nowMs)
  assert.equal(healthy, false)
  assert.deepEqual(sentences.slice(1), [
    'It has no identity yet.',
    'ALREADY_ACTIVE (enrollment, 1 min ago, 4 times): Taken.',
    'It tries again in 5 s.',
    'What to do: wait',
  ])
})

test('an agent that died without a word is not described as running', () => {
  const { healthy, sentences } = explain(status, false, nowMs)
  assert.equal(healthy, false)
  assert.match(sentences[0] ?? '', /not running; it last wrote its status 1 s ago/)
})

test('an agent that gave up says why', () => {
  const outcome = { kind: 'refused', code: 'TOKEN_USED', text: 'Used.', next: 'make a new one' }
  const { sentences } = explain({ ...status, phase: 'stopped', outcome }, false, nowMs)
  assert.match(sentences[0] ?? '', /gave up 1 h ago: TOKEN_USED: Used\. What to do: make a new one/)
})

test('an expired certificate is called cert_expired', () => {
  const certificate = { serial: 'ab12', not_after: at(-hour), renew_at: at(-9 * hour), key: 'file' }
  const { healthy, sentences } = explain({ ...status, certificate }, true, nowMs)
  assert.equal(healthy, false)
  assert.match(sentences[2] ?? '', /^cert_expired: its certificate ab12 expired 1 h ago/)
})
