import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isLater, mostHeads, sightingOf, type SeenHead, type Sighting } from './sighting.ts'

/** What became of a journal: chains that grow at their end, and now and then a store that was confirmed anew, shorter. */
const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ kind: fc.constant('grow' as const), chain: fc.nat(3), by: fc.integer({ min: 1, max: 40 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('confirm' as const), left: fc.integer({ min: 0, max: 100 }) }),
  },
)

/** Every state of it, oldest first. */
const historyOf = (steps: readonly (typeof step extends fc.Arbitrary<infer T> ? T : never)[]): Sighting[] => {
  const history: Sighting[] = [sightingOf(0, [head('chain-0', 1, 0)])]
  for (const taken of steps) {
    const now = history.at(-1) ?? assert.fail()
    if (taken.kind === 'confirm') {
      const heads = now.heads.map(({ chain, sequence }) =>
        head(chain, Math.floor((sequence * taken.left) / 100), now.lineage + 1),
      )
      history.push(sightingOf(now.lineage + 1, heads))
      continue
    }
    const chain = `chain-${taken.chain}`
    const before = now.heads.find((one) => one.chain === chain)?.sequence ?? 0
    const others = now.heads.filter((one) => one.chain !== chain)
    history.push(sightingOf(now.lineage, [...others, head(chain, before + taken.by, now.lineage)]))
  }
  return history
}

const head = (chain: string, sequence: number, lineage: number): SeenHead => ({
  chain,
  sequence,
  hash: `${chain}/${sequence}/${lineage}`,
})

const keep = (kept: Sighting | null, next: Sighting): Sighting => (kept === null || isLater(next, kept) ? next : kept)

test('whatever order sightings come in, late and more than once, the newest of them is what is kept', () => {
  fc.assert(
    fc.property(
      fc
        .array(step, { maxLength: 40 })
        .map(historyOf)
        .chain((history) =>
          fc.tuple(fc.constant(history), fc.array(fc.nat(history.length - 1), { minLength: 1, maxLength: 60 })),
        ),
      ([history, order]) => {
        const kept = order.map((at) => history[at] ?? assert.fail()).reduce(keep, null)
        assert.deepEqual(kept, history[Math.max(...order)])
      },
    ),
  )
})

test('nothing is later than itself, and of two different states exactly one is later', () => {
  fc.assert(
    fc.property(
      fc.array(step, { minLength: 1, maxLength: 40 }).map(historyOf),
      fc.nat(),
      fc.nat(),
      (history, one, other) => {
        const [a, b] = [
          history[one % history.length] ?? assert.fail(),
          history[other % history.length] ?? assert.fail(),
        ]
        assert.equal(isLater(a, a), false)
        if (a !== b) assert.notEqual(isLater(a, b), isLater(b, a))
      },
    ),
  )
})

test('of more chains than fit, those that reach furthest are named, whatever order they are read in', () => {
  const heads = Array.from({ length: mostHeads + 10 }, (_, at) => head(`chain-${at}`, 1000 - at, 0))
  const { heads: named } = sightingOf(2, heads.toReversed())
  assert.equal(named.length, mostHeads)
  assert.deepEqual(named, heads.slice(0, mostHeads))
})
