import assert from 'node:assert/strict'
import { test } from 'node:test'
import { entryColumns, journalLine } from './journal-lines.ts'

test('an entry is one line: place, time, type, node, actor, and what else it says', () => {
  const entry = {
    schema: 1,
    sequence: 7,
    atMs: 1_800_000_000_000,
    type: 'host.revoked',
    actor: 'operator:admin',
    node: 'gpu-001',
    epoch: 1,
    serial: null,
    body: { reason: 'odd\u001b[2J traffic\nforged line', channels: 1 },
  }
  assert.equal(
    journalLine({ cursor: 'c7', hash: 'ab', entry }),
    '7  2027-01-15T08:00:00.000Z  host.revoked  gpu-001  by operator:admin  epoch=1  ' +
      'reason="odd\\x1b[2J traffic\\x0aforged line"  channels=1',
  )
})

test('changed durations are shown as they are written in a command', () => {
  const changes = [
    'livenessGraceMs: 300000 -> 420000',
    'certificate.lifetimeMs: 86400000 -> null',
    'note: "1Ms: 2 -> 3" -> 4',
  ]
  const entry = { sequence: 1, atMs: 0, type: 'domain.changed', actor: 'operator:admin', body: { changes } }
  assert.match(
    journalLine({ cursor: 'c', hash: 'h', entry }),
    /changes="livenessGraceMs: 5m -> 7m; certificate\.lifetimeMs: 24h -> null; note: '1Ms: 2 -> 3' -> 4"$/,
  )
})

test('a list of texts is read as its texts, and a long text is cut in a table only', () => {
  const body = { changes: ['mode: "auto"', 'b'], why: 'x'.repeat(200) }
  const details = (whole: boolean) =>
    entryColumns(whole)
      .find(({ name }) => name === 'details')
      ?.cell({ cursor: 'c', hash: 'h', entry: { sequence: 1, type: 'profile.changed', actor: 'operator:admin', body } })
  const text = `changes="mode: 'auto'; b" why=${'x'.repeat(200)}`
  assert.deepEqual([details(false), details(true)], [`${text.slice(0, 99)}…`, text])
})
