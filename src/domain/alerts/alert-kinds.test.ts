import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { test } from 'node:test'
import { noonMs } from '../../../test/fakes/sample-rows.ts'
import { alertKinds, alertRule, alertSeverities, wantedAlert, type WantedAlert } from './alert-kinds.ts'

test('an alert about a node names it; any other names a node only where its source does', () => {
  const about = ({ subject, node }: WantedAlert) => [subject, node]
  const condition = { name: 'cert_expired', sinceMs: 0, reason: 'it ran out', evidence: {} } as const
  assert.deepEqual(about(wantedAlert('cert_expired', 'gpu-001', condition)), ['gpu-001', 'gpu-001'])
  assert.deepEqual(about(wantedAlert('rows_differ', 'a row', 'differs')), ['a row', null])
  assert.deepEqual(about(wantedAlert('rows_differ', 'a row', 'differs', { node: 'gpu-001' })), ['a row', 'gpu-001'])
})

test('five kinds are about what has happened and end with an acknowledgement; two more need one before they end', () => {
  const endedBy = (how: string) => alertKinds.filter((kind) => alertRule(kind).endedBy === how)
  assert.deepEqual(endedBy('acknowledgement'), [
    'store_put_back',
    'cut_off_delayed',
    'superseded_by_hardware',
    'token_reused',
    'issuer_violation',
  ])
  assert.deepEqual(endedBy('both'), ['rows_differ', 'copied_image'])
})

test('an alert without a known beginning has none', () => {
  assert.equal(wantedAlert('store_damaged', 'lab', { fault: 'page 3' }).sinceMs, null)
  assert.equal(wantedAlert('store_damaged', 'lab', { fault: 'page 3' }, { sinceMs: noonMs }).sinceMs, noonMs)
})

test('of many nodes that share a key eight are named', () => {
  const nodes = Array.from({ length: 10 }, (_, at) => `n${at}`)
  assert.match(wantedAlert('shared_key', 'k', { nodes }).reason, /is on n0, .*, n7 and 2 more$/)
  assert.match(wantedAlert('shared_key', 'k', { nodes: nodes.slice(0, 2) }).reason, /is on n0, n1$/)
})

test('an alert about a clock says how far it is ahead or behind', () => {
  const said = (offsetMs: number) => wantedAlert('clock_off', 'p2', { replica: 'p2', offsetMs }).reason
  assert.match(said(61_000), /p2 is 1 min 1 s ahead of the database's/)
  assert.match(said(-61_000), /p2 is 1 min 1 s behind the database's/)
})

const putBack = (meanwhile: readonly string[] | null) => wantedAlert('store_put_back', 'a', { meanwhile, file: 'f' })

test('a store that was put back: the alert names some of what was revoked meanwhile, says when nobody wrote it down, and is less urgent when there was nothing', () => {
  const seven = Array.from({ length: 7 }, (_, at) => `node n${at} revoked`)
  assert.match(putBack(seven).reason, /: node n0 revoked; .*node n4 revoked; and 2 more\. Revoke it again\. /)
  assert.match(putBack(null).reason, /is not in it: revoke it again/)
  const nothing = putBack([])
  assert.deepEqual([nothing.severity, /nothing on record/.test(nothing.reason)], ['warning', true])
})

test('docs/DAY-2.md describes every kind of alert, with the severities it may have', () => {
  const text = fs.readFileSync(new URL('../../../docs/DAY-2.md', import.meta.url), 'utf8')
  const told = new Map(
    [...text.matchAll(/^\| `(\w+)` +\| ([a-z, ]+?) +\|/gm)].map(([, kind, severity]) => [kind, severity]),
  )
  for (const kind of alertKinds) {
    const { severity } = alertRule(kind)
    assert.equal(told.get(kind), typeof severity === 'string' ? severity : alertSeverities.join(', '), kind)
  }
})
