import { test } from 'node:test'
import assert from 'node:assert/strict'
import { expectDecided, expectRefused } from '../../../test/fakes/expect-decision.ts'
import { alice, noonMs, row } from '../../../test/fakes/sample-rows.ts'
import {
  decideAddWorkerIssuer,
  decideChangeWorkerIssuer,
  type WorkerIssuer,
  type WorkerIssuerSettings,
} from './worker-issuer.ts'

const settings: WorkerIssuerSettings = {
  ...{ iss: 'https://cluster.example', aud: 'muster', sub: 's', keys: { kind: 'file', document: '{}' } },
  ...{ types: [], vclusters: [], signedBy: 'built-in' },
}
const issuerWith = (types: readonly string[]): WorkerIssuer => {
  const { signedBy: _, ...rest } = settings
  return { ...rest, types, name: 'east', createdAtMs: 0, createdBy: 'operator:carol', removedAtMs: null }
}

const facts = (asked: Partial<WorkerIssuerSettings>) => ({
  ...{ name: 'east', all: [], issuers: [], asked: { ...settings, ...asked }, by: alice, nowMs: noonMs },
})
const add = (types: readonly string[], existing: WorkerIssuer | null = null) =>
  decideAddWorkerIssuer({ ...facts({ types }), existing: existing === null ? null : row(existing) })
const change = (existing: WorkerIssuer, asked: Partial<WorkerIssuerSettings>) =>
  decideChangeWorkerIssuer({ ...facts(asked), existing: row(existing) })

test('a type of task that there is not is refused with those that there are; one of a host is taken', () => {
  assert.deepEqual(expectDecided(add(['service', 'x-led', 'run'])).issuer.types, ['run', 'service', 'x-led'])
  const why = /^types: "nonsense" is no type of task; there are run, service, .*, or one that begins with x-$/
  expectRefused(add(['run', 'nonsense']), 'REQUEST_INVALID', why)
  expectRefused(change(issuerWith(['run']), { types: ['run', 'nonsense'] }), 'REQUEST_INVALID', why)
})

test('an issuer of an earlier release keeps a type that there is not while something else of it changes', () => {
  const before = issuerWith(['nonsense'])
  const changed = change(before, { types: ['nonsense'], aud: 'other' })
  assert.deepEqual((expectDecided(changed) as { issuer: WorkerIssuer }).issuer.types, ['nonsense'])
  expectRefused(change(before, { types: ['nonsense', 'gibberish'] }), 'REQUEST_INVALID', /"gibberish"/)
  expectRefused(add(['nonsense'], { ...before, removedAtMs: noonMs }), 'REQUEST_INVALID', /"nonsense"/)
})
