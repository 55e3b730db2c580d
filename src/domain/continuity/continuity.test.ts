import assert from 'node:assert/strict'
import { test } from 'node:test'
import { entryTypesOf, expectDecided, expectRefused, readsOf, writesOf } from '../../../test/fakes/expect-decision.ts'
import { alice, domainRow, hour, noonMs, row } from '../../../test/fakes/sample-rows.ts'
import type { Alert } from '#domain/alerts/alert.ts'
import {
  decideConfirmStore,
  decideDoubt,
  doubtInWords,
  lossOf,
  takenAway,
  type Doubt,
  type DoubtFacts,
  type Loss,
  type Place,
} from './continuity.ts'
import { issuanceStopped } from '#domain/identity/node-certificate.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { JournalEntry } from '#domain/core/journal-entry.ts'

const head = { chain: 'c1', sequence: 80, hash: 'a' }
const seen = { lineage: 1, heads: [head] }
const place = (changes: Partial<Place> = {}): Place => ({ head, hash: 'a', newest: 90, ...changes })

test('what our journal holds is no reason for doubt, and neither is what was pruned or confirmed away', () => {
  assert.equal(lossOf(seen, 1, [place()]), null)
  assert.equal(lossOf(seen, 1, [place({ hash: null })]), null)
  assert.equal(lossOf(seen, 2, [place({ hash: 'b' })]), null)
  assert.equal(lossOf(seen, 2, [place({ hash: null, newest: null })]), null)
})

test('a place we do not have, another entry there, a chain or a lineage that is not ours: the store has lost something', () => {
  const about = { lineage: 1, chain: 'c1', sequence: 80, hash: 'a' }
  assert.deepEqual(lossOf(seen, 1, [place({ hash: null, newest: 50 })]), { ...about, why: 'missing', ours: 50 })
  assert.deepEqual(lossOf(seen, 1, [place({ hash: null, newest: null })]), { ...about, why: 'missing', ours: null })
  assert.deepEqual(lossOf(seen, 1, [place({ hash: 'b' })]), { ...about, why: 'other', ours: 90 })
  assert.deepEqual(lossOf(seen, 0, [place()]), { ...about, why: 'lineage', ours: 90 })
})

test('of several chains the one that reaches furthest is named, and one that fits does not speak for the others', () => {
  const near = place({ head: { ...head, chain: 'c2', sequence: 7 }, hash: null, newest: 6 })
  assert.equal(lossOf(seen, 1, [near, place()])?.chain, 'c2')
  assert.equal(lossOf(seen, 1, [near, place({ hash: null, newest: 50 })])?.chain, 'c1')
})

const loss: Loss = { why: 'missing', lineage: 0, chain: 'c1', sequence: 80, ours: 50 }
const doubt: Doubt = { ...loss, sinceMs: noonMs - hour, node: 'gpu-001', newestEntryMs: noonMs - 24 * hour }
const inDoubt = (changes: Partial<Doubt> = {}, lineage = 0) =>
  domainRow({ continuity: { lineage, doubt: { ...doubt, ...changes } } })

const facts = (changes: Partial<DoubtFacts> = {}): DoubtFacts => ({
  domain: domainRow(),
  loss,
  judgedBy: 0,
  node: 'gpu-007',
  witness: 'node',
  newestEntryMs: noonMs - hour,
  alert: null,
  newAlertId: 'alert-1',
  by: alice,
  nowMs: noonMs,
  ...changes,
})

const continuityIn = (verdict: Parameters<typeof writesOf>[0]) =>
  (writesOf(verdict, 'domain')[0] as DomainSettings).continuity

test('a doubt is one commit: the domain, an entry that names the node, and an alert', () => {
  const verdict = expectDecided(decideDoubt(facts()))
  assert.deepEqual(continuityIn(verdict), {
    lineage: 0,
    doubt: { ...loss, sinceMs: noonMs, node: 'gpu-007', witness: 'node', newestEntryMs: noonMs - hour },
  })
  assert.deepEqual(entryTypesOf(verdict), ['store.doubted', 'alert.raised'])
  assert.deepEqual(readsOf(verdict), ['domain/domain@3', 'alert/store_in_doubt/lab.example@0'])
  const [entry] = verdict.change.entries
  assert.equal(entry?.node, 'gpu-007')
  assert.deepEqual(entry?.body, { why: 'missing', chain: 'c1', seen: 80, ours: 50, seen_lineage: 0, lineage: 0 })
})

test('R1: a plane that misses its own entries is named in the doubt, and in no field that is for nodes', () => {
  const lost = { ...loss, hash: 'ab' }
  const verdict = expectDecided(decideDoubt(facts({ loss: lost, node: 'host-1 42', witness: 'plane' })))
  const [entry] = verdict.change.entries
  assert.equal(entry?.node, null)
  assert.deepEqual([entry?.body['hash'], entry?.body['plane']], ['ab', 'host-1 42'])
  assert.match(doubtInWords(domainRow({ continuity: continuityIn(verdict) }).value) ?? '', /plane host-1 42 has seen/)
})

test('a sighting of a second node changes a doubt only where it shows a larger loss', () => {
  assert.equal(decideDoubt(facts({ domain: inDoubt() })).kind, 'unchanged')
  assert.equal(decideDoubt(facts({ domain: inDoubt({ sequence: 90 }) })).kind, 'unchanged')
  const more = expectDecided(decideDoubt(facts({ domain: inDoubt(), loss: { ...loss, sequence: 95 } })))
  assert.deepEqual(continuityIn(more).doubt, { ...doubt, witness: 'node', sequence: 95 })
  const newer = expectDecided(
    decideDoubt(facts({ domain: inDoubt(), loss: { ...loss, why: 'lineage', lineage: 4, sequence: 3 } })),
  )
  assert.equal(continuityIn(newer).doubt?.lineage, 4)
})

test('a finding by a lineage that an operator has confirmed away meanwhile is nothing', () => {
  assert.equal(decideDoubt(facts({ domain: domainRow({ continuity: { lineage: 1, doubt: null } }) })).kind, 'unchanged')
})

const standing: Alert = {
  id: 'alert-0',
  kind: 'store_in_doubt',
  subject: 'lab.example',
  node: null,
  severity: 'critical',
  sinceMs: noonMs - hour,
  reason: 'an older copy',
  state: { kind: 'open' },
}

const confirm = (domain: ReturnType<typeof domainRow>) =>
  decideConfirmStore({
    domain,
    alert: row(standing),
    newAlertId: 'alert-1',
    reason: 'restored',
    by: alice,
    nowMs: noonMs,
  })

test('a confirmation goes beyond every lineage that was seen, says who did it and why, and resolves the alert', () => {
  const verdict = confirm(inDoubt({ lineage: 4 }, 1))
  assert.ok(verdict.kind === 'decided')
  assert.deepEqual([verdict.lineage, verdict.doubt.node], [5, 'gpu-001'])
  assert.deepEqual(continuityIn(verdict), { lineage: 5, doubt: null })
  assert.deepEqual(entryTypesOf(verdict), ['store.confirmed', 'alert.resolved'])
  const [entry] = verdict.change.entries
  assert.deepEqual([entry?.actor, entry?.body['reason'], entry?.body['lineage']], ['operator:alice', 'restored', 5])
  assert.equal(entry?.body['doubted_for_ms'], hour)
})

test('a store without a doubt is not confirmed', () => {
  expectRefused(confirm(domainRow()), 'STORE_NOT_IN_DOUBT')
})

test('while there is a doubt nothing is issued, and the refusal names the reason and a retry time', () => {
  assert.equal(issuanceStopped(domainRow().value, 'known'), null)
  assert.equal(doubtInWords(domainRow().value), null)
  const barred = issuanceStopped(inDoubt().value, 'known')
  assert.deepEqual([barred?.code, barred?.retryAfterMs], ['STORE_IN_DOUBT', 60_000])
  assert.match(
    doubtInWords(inDoubt().value) ?? '',
    /node gpu-001 has seen entry 80 of chain c1, and this store ends at 50/,
  )
})

const said = (type: string, about: object): JournalEntry => ({ type, body: {}, ...about }) as unknown as JournalEntry

test('what takes something away is named, and nothing else', () => {
  const entries = [
    said('host.revoked', { node: 'gpu-001' }),
    said('alert.raised', { node: 'gpu-001' }),
    said('operator_key.revoked', { body: { key_id: 'K1' } }),
    said('ca.compromised', { issuer: 'aa' }),
  ]
  assert.deepEqual(takenAway(entries), ['node gpu-001 revoked', 'operator key K1 revoked', 'authority aa withdrawn'])
})
