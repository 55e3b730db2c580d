import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  beginMigration,
  endWithdrawn,
  exclude,
  finish,
  goBack,
  include,
  placeOf,
  retire,
  shareOut,
  whoSigns,
  type Barred,
  type Migration,
  type Moved,
  type Progress,
} from './migration.ts'

const ready: Progress = {
  ...{ unconfirmed: [], underOld: [], underNew: [], newAnswers: true },
  leaves: { count: 0, lastMs: 0 },
}
const wanted = { id: 'm1', profile: 'gpu-cloud', from: 'built-in', to: 'step' }

const moved = (verdict: Moved | Barred): Migration => {
  assert.ok(verdict.kind === 'moved', JSON.stringify(verdict))
  return verdict.migration
}
const barred = (verdict: Moved | Barred): Barred => {
  assert.ok(verdict.kind === 'barred', JSON.stringify(verdict))
  return verdict
}

const begun = moved(beginMigration(wanted, null))
const shared = (percent: number): Migration => moved(shareOut(begun, percent, ready))
const finished = moved(finish(shared(100), ready))
const retired = moved(retire(finished, ready))
const nodes = Array.from({ length: 2000 }, (_, index) => `gpu-${index}`)
const asking = { hasRoot: true, newAnswers: true }
const moving = (migration: Migration): string[] =>
  nodes.filter((node) => whoSigns(migration, { ...asking, node }).by === migration.to)

test('a profile is in one migration at a time, and an ended one makes way', () => {
  assert.match(barred(beginMigration({ ...wanted, to: 'vault' }, begun)).why, /on its way from built-in to step/)
  assert.match(barred(beginMigration({ ...wanted, to: 'built-in' }, null)).why, /already/)
  moved(beginMigration({ ...wanted, id: 'm2', from: 'step', to: 'vault' }, retired))
})

test('nothing is shared out before every active node has confirmed, or is excluded by name', () => {
  const progress = { ...ready, unconfirmed: ['gpu-1', 'gpu-2'] }
  assert.deepEqual(barred(shareOut(begun, 10, progress)).nodes, ['gpu-1', 'gpu-2'])
  const without = moved(exclude(begun, ['gpu-1']))
  assert.deepEqual(barred(shareOut(without, 10, progress)).nodes, ['gpu-2'])
  moved(shareOut(moved(exclude(without, ['gpu-2'])), 10, progress))
})

test('a percentage is a whole number from 1 to 100', () => {
  for (const percent of [0, -1, 101, 1.5, Number.NaN]) barred(shareOut(begun, percent, ready))
})

test('nothing moves to an issuer that does not answer', () => {
  barred(shareOut(begun, 10, { ...ready, newAnswers: false }))
  barred(finish(shared(100), { ...ready, newAnswers: false }))
})

test('all nodes have to be shared out before the end', () => {
  assert.match(barred(finish(shared(99), ready)).why, /99 percent/)
  assert.match(barred(finish(begun, ready)).why, /--share 100 comes first/)
  assert.match(barred(retire(shared(100), ready)).why, /--finish comes first/)
})

test('the old root stays while a certificate hangs under it, a node has not confirmed, or one is excluded', () => {
  assert.deepEqual(barred(retire(finished, { ...ready, underOld: ['gpu-7'] })).nodes, ['gpu-7'])
  assert.deepEqual(barred(retire(finished, { ...ready, unconfirmed: ['gpu-8'] })).nodes, ['gpu-8'])
  assert.deepEqual(barred(retire(moved(exclude(finished, ['gpu-9'])), ready)).nodes, ['gpu-9'])
  moved(retire(moved(include(moved(exclude(finished, ['gpu-9'])), ['gpu-9'])), ready))
  barred(retire(shared(100), ready))
})

test('each step is undone until the old root is gone', () => {
  const back = (migration: Migration) => goBack(migration, ready)
  assert.deepEqual(moved(back(finished)).stage, { kind: 'share', percent: 100 })
  assert.deepEqual(moved(back(shared(40))).stage, { kind: 'prepare' })
  const ended = moved(back(begun))
  assert.deepEqual(ended.stage, { kind: 'ended', why: 'it was taken back' })
  barred(back(ended))
  barred(back(retired))
  barred(exclude(retired, ['gpu-1']))
  barred(include(ended, ['gpu-1']))
  moved(beginMigration({ ...wanted, id: 'm2' }, ended))
})

test('the new root is delivered until no node has its newest certificate under it', () => {
  assert.deepEqual(barred(goBack(begun, { underNew: ['gpu-3'] })).nodes, ['gpu-3'])
  moved(goBack(shared(40), { underNew: ['gpu-3'] }))
})

test('the old root stays while a certificate of it can be valid, also one that its node has replaced', () => {
  const leaves = { count: 2, lastMs: Date.UTC(2026, 1, 3, 4, 5, 6) }
  const { why } = barred(retire(finished, { ...ready, leaves }))
  assert.match(why, /^2 certificates of built-in that nodes have replaced .* the last ends 2026-02-03T04:05:06/)
  assert.match(barred(retire(finished, { ...ready, leaves: { ...leaves, count: 1000 } })).why, /^at least 1000 /)
})

test('a percentage moves that many of the nodes, give or take a few', () => {
  for (const percent of [1, 10, 50, 90]) {
    const share = (100 * moving(shared(percent)).length) / nodes.length
    assert.ok(Math.abs(share - percent) < 4, `${percent} percent moved ${share}`)
  }
  assert.equal(moving(begun).length, 0)
  assert.equal(moving(shared(100)).length, nodes.length)
})

test('a higher percentage moves further nodes and none back', () => {
  fc.assert(
    fc.property(
      fc.string(),
      fc.string(),
      fc.integer({ min: 1, max: 100 }),
      fc.integer({ min: 1, max: 100 }),
      (id, node, one, other) => {
        const [low, high] = [Math.min(one, other), Math.max(one, other)]
        const place = placeOf(id, node)
        assert.ok(Number.isInteger(place) && place >= 0 && place < 100)
        const at = (percent: number) => whoSigns({ ...shared(percent), id }, { ...asking, node }).by
        if (at(low) === 'step') assert.equal(at(high), 'step')
      },
    ),
  )
})

test('another migration of the profile shares its nodes out differently', () => {
  const [one, other] = [moving(shared(50)), moving({ ...shared(50), id: 'm2' })]
  const both = one.filter((node) => other.includes(node))
  assert.ok(both.length < 0.6 * one.length)
})

test('a node without the new root, an excluded one, and all while the new issuer is away stay with the old one', () => {
  for (const migration of [shared(100), finished]) {
    const of = (more: object) => whoSigns(migration, { ...asking, node: 'gpu-1', ...more })
    assert.deepEqual(of({}), { by: 'step', because: null })
    assert.deepEqual(of({ hasRoot: false }), { by: 'built-in', because: 'no-root' })
    assert.deepEqual(of({ newAnswers: false }), { by: 'built-in', because: 'new-issuer-away' })
    const without = moved(exclude(migration, ['gpu-1']))
    assert.deepEqual(whoSigns(without, { ...asking, node: 'gpu-1' }), { by: 'built-in', because: 'excluded' })
  }
  assert.equal(whoSigns(retired, { node: 'gpu-1', hasRoot: false, newAnswers: false }).by, 'step')
})

test('of two issuers the one that was not withdrawn is left', () => {
  const of = (withdrawn: string) => endWithdrawn(shared(40), withdrawn)
  assert.deepEqual([of('step').left, of('built-in').left], ['built-in', 'step'])
  assert.deepEqual(of('step').stage, { kind: 'ended', why: 'step was withdrawn' })
})
