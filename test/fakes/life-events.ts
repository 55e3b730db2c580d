// Random lives: events in any order, two at once now and then, under any mixture of rules.

import fc from 'fast-check'
import type { Profile } from '#domain/core/profile.ts'
import { aboutNode, type LifeEvent } from './life.ts'
import { hour, minute, profileRow } from './sample-rows.ts'

const node = fc.constantFrom('n1', 'n2')
const key = fc.constantFrom('k1', 'k2', 'k3', 'k4', 'k5', 'k6', 'k7', 'k8')
const on = fc.nat({ max: 3 })
const replace = fc.boolean()
const behind = fc.constantFrom(0 as const, 0 as const, 0 as const, 1 as const, 2 as const, null)
const live = fc.constantFrom('nobody' as const, 'nobody' as const, 'claimant' as const, 'other' as const)
const credential = fc.constantFrom('registered' as const, 'registered' as const, 'former' as const, 'wrong' as const)
const bundle = fc.constant('repair' as const)
const event: fc.Arbitrary<LifeEvent> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ do: fc.constant('register' as const), node }) },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('token' as const), node: fc.option(node, { freq: 3 }), replace }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('withdraw' as const), on }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('purge' as const), node }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('enroll' as const), on, node, key }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('hardware' as const),
      node,
      key,
      probe: fc.constantFrom('answered' as const, 'silent' as const),
    }),
  },
  { weight: 8, arbitrary: fc.record({ do: fc.constant('use' as const), on }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('renew' as const), on, key }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('renew' as const), on, key, behind, live }) },
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant('recover' as const), node, key, with: credential, behind, live }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('recover' as const), node, key, with: bundle, behind, live }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('rehearse' as const), node, diskReserve: fc.boolean(), behind }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('bundle' as const, 'deny' as const), node }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('evidence' as const), node, ok: fc.boolean() }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('approve' as const), node, person: fc.constantFrom('alice', 'bob') }),
  },
  { weight: 9, arbitrary: fc.record({ do: fc.constantFrom(...aboutNode), node }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('wait' as const),
      ms: fc.constantFrom(minute, 11 * minute, 13 * hour, 40 * hour),
    }),
  },
)

/** Two events at once are decided on the same rows and committed one after the other. */
export const step = fc.oneof(
  { weight: 1, arbitrary: fc.tuple(event) },
  { weight: 1, arbitrary: fc.tuple(event, event) },
)

export const profile: fc.Arbitrary<Profile> = fc
  .record({
    allOf: fc.constantFrom(['token'] as const, ['hardware'] as const, ['token', 'hardware'] as const),
    tokenScope: fc.constantFrom('node' as const, 'domain' as const),
    onActiveConflict: fc.constantFrom('prove' as const, 'probe' as const, 'reject' as const),
    comeback: fc.record({
      by: fc.constantFrom('certificate' as const, 'join' as const, 'approve' as const),
      people: fc.constantFrom(1, 2),
    }),
    mode: fc.constantFrom('auto' as const, 'auto' as const, 'approve' as const, 'deny' as const),
    onDuplicate: fc.constantFrom('keep-live' as const, 'fence' as const),
  })
  .map(({ allOf, tokenScope, mode, ...rest }) => {
    const { value } = profileRow('gpu-cloud')
    return { ...value, ...rest, join: { ...value.join, allOf, tokenScope }, recovery: { ...value.recovery, mode } }
  })
