// Whatever is placed, moved, drained and taken away on two nodes, by several at once: the count on a node is what is there.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { rowTable, type RowTable } from '../../../test/fakes/row-table.ts'
import { alice, domainRow, holder, nodeRow, noonMs, profileRow, row } from '../../../test/fakes/sample-rows.ts'
import { decideGiveBack, decidePlace, releaseAll, type Allocation } from './allocation.ts'
import { readOf, type Change, type Row, entry, withPart } from '#domain/core/change.ts'
import { decideDrain, decideDrained, decideUndrain } from './drain.ts'
import { decideDuplicate } from '#domain/identity/duplicate.ts'
import type { Node } from '#domain/core/node.ts'
import { decideQuarantine } from '#domain/revocation/quarantine.ts'
import { decideRepairBundle } from '#domain/recovery/repair.ts'
import { decideDecommission, decideRevoke } from '#domain/revocation/revocation.ts'

const nodeIds = ['gpu-001', 'gpu-002'] as const
const allocationIds = ['a1', 'a2', 'a3', 'a4', 'a5', 'a6'] as const
const verbs = ['drain', 'drained', 'undrain', 'quarantine', 'fence', 'repair', 'revoke', 'decommission', 'in'] as const

const event = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      what: fc.constant('place' as const),
      on: fc.constantFrom(...nodeIds),
      id: fc.constantFrom(...allocationIds),
    }),
  },
  { weight: 3, arbitrary: fc.record({ what: fc.constant('back' as const), id: fc.constantFrom(...allocationIds) }) },
  { weight: 4, arbitrary: fc.record({ what: fc.constantFrom(...verbs), on: fc.constantFrom(...nodeIds) }) },
)
type Event = typeof event extends fc.Arbitrary<infer E> ? E : never

// As the table has them: written once.
const domain = row(domainRow().value, 1)
const profile = row(profileRow('gpu-cloud', { onDuplicate: 'fence' }).value, 1)

const isLive = ({ state }: Allocation): boolean => state.kind !== 'released'

const liveOn = (table: RowTable, node: string): readonly Row<Allocation>[] =>
  table.all('allocation').filter(({ value }) => value.node === node && isLive(value))

/** What the event's decision wants written, on the rows as they are; null: nothing. */
const plan = (table: RowTable, happens: Event): Change | null => {
  const changeOf = (verdict: object): Change | null => ('change' in verdict ? (verdict.change as Change | null) : null)
  const facts = (id: string) => ({ node: table.get('node', id) as Row<Node>, by: alice, nowMs: noonMs })
  if (happens.what === 'place') {
    const wanted = { id: happens.id, vcluster: 'vc1', owner: 'slurm' }
    return changeOf(decidePlace({ ...facts(happens.on), wanted, existing: table.get('allocation', happens.id) }))
  }
  if (happens.what === 'back') {
    const allocation = table.get('allocation', happens.id)
    return allocation === null
      ? null
      : changeOf(decideGiveBack({ ...facts(allocation.value.node), allocation, why: 'finished' }))
  }
  const about = { ...facts(happens.on), allocations: liveOn(table, happens.on) }
  const taken = { domain, certificates: [], bans: [], extraParts: releaseAll({ ...about, why: happens.what }) }
  switch (happens.what) {
    case 'drain':
      return changeOf(decideDrain(about))
    case 'drained':
      return changeOf(decideDrained(about))
    case 'undrain':
      return changeOf(decideUndrain(about))
    case 'quarantine':
      return changeOf(decideQuarantine({ ...about, ...taken, reason: 'odd' }))
    case 'repair':
      return changeOf(
        decideRepairBundle({ ...about, ...taken, id: 'r1', hash: 'h', reason: 'odd', expiresAtMs: noonMs + 1 }),
      )
    case 'revoke':
      return changeOf(decideRevoke({ ...about, ...taken, reason: 'stolen' }))
    case 'decommission': {
      const busy = { allocations: about.allocations.length }
      return changeOf(decideDecommission({ ...about, ...taken, ...busy, force: true }))
    }
    case 'fence': {
      const two = { claimant: holder(1), otherHolder: null, lastSeen: null, claimantLive: false }
      const verdict = decideDuplicate({ ...about, ...two, domain, profile, sign: 'old-counter' })
      if (verdict.kind !== 'fenced') return null
      return withPart(verdict.change, releaseAll({ ...verdict.fence, allocations: about.allocations }))
    }
    case 'in':
      return comesIn(about.node)
  }
}

/** As if it had joined anew: none of what it had is there any more. */
const comesIn = (node: Row<Node>): Change => ({
  reads: [readOf('node', node.value.id, node)],
  writes: [
    {
      put: 'node',
      value: { ...node.value, membership: nodeRow('active').value.membership, assignment: 'vc1', conditions: [] },
    },
  ],
  entries: [entry(alice, noonMs, 'node.returned', { node: node.value.id })],
})

const check = (table: RowTable): void => {
  for (const id of nodeIds) {
    const { value } = table.get('node', id) as Row<Node>
    const live = liveOn(table, id).map((row) => row.value.state.kind)
    assert.equal(value.allocations, live.length, `${id} counts ${value.allocations}`)
    if (value.membership.kind === 'quarantined' || value.membership.kind === 'revoked') assert.equal(live.length, 0)
    if (value.drain === 'drained') assert.equal(live.length, 0)
    if (value.drain === 'draining') assert.notEqual(live.length, 0)
    assert.ok(live.every((state) => state === (value.drain === 'draining' ? 'releasing' : 'running')))
  }
  const said = (type: string) => table.journal.filter((draft) => draft.type === type).length
  const all = table.all('allocation').map(({ value }) => value)
  assert.equal(said('allocation.created'), all.length)
  assert.equal(said('allocation.released'), all.filter((one) => !isLive(one)).length)
}

test('a node counts exactly what runs on it, over any events and any lost races', () => {
  fc.assert(
    // Those of one turn are decided on the same rows; whoever comes too late has lost, and asks again later or never.
    fc.property(fc.array(fc.array(event, { minLength: 1, maxLength: 3 }), { maxLength: 40 }), (turns) => {
      const table = rowTable()
      for (const id of nodeIds) {
        const { value } = nodeRow('active', { id, assignment: 'vc1', hardware: { macs: [], bmcSerial: null } })
        const entries = [entry(alice, noonMs, 'node.registered', { node: id })] as const
        table.commit({ reads: [readOf('node', id, null)], writes: [{ put: 'node', value }], entries })
      }
      table.commit({
        reads: [readOf('domain', 'domain', null), readOf('profile', profile.value.name, null)],
        writes: [
          { put: 'domain', value: domain.value },
          { put: 'profile', value: profile.value },
        ],
        entries: [entry(alice, noonMs, 'domain.created', {})],
      })
      for (const events of turns) {
        const planned = events.map((happens) => plan(table, happens))
        for (const change of planned) if (change !== null) table.commit(change)
        check(table)
      }
    }),
    { numRuns: 500 },
  )
})
