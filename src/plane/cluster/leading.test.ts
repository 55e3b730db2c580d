import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Change } from '#domain/core/change.ts'
import { silentLog } from '#platform/log.ts'
import { startLeading } from './leading.ts'
import type { FencingToken } from '#plane/store/contract/replicas.ts'
import { StaleReplica } from '#plane/store/contract/store-errors.ts'
import type { Store } from '#plane/store/contract/store.ts'

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
const change = {} as Change

/** As much of a store as a leader of it needs; `lead` says who leads. */
const setUp = () => {
  const fencingTokens: (FencingToken | undefined)[] = []
  let leads: FencingToken | null = null
  let tell: (fencingToken: FencingToken | null) => void = () => {}
  const store = {
    commit: async (_change: Change, fencingToken?: FencingToken) => {
      fencingTokens.push(fencingToken)
      return 'lost-race' as const
    },
    forget: async () => 7,
    keepWebhookProgress: async () => {},
    replicas: { leadership: () => leads, onLeadership: (run: typeof tell) => void (tell = run) },
  } as unknown as Store
  const lead = async (number: number | null): Promise<void> => {
    leads = number === null ? null : { number }
    tell(leads)
    await settled()
  }
  return { store, lead, fencingTokens }
}

test('what a leader does begins when it leads, ends when it does not, and begins anew', async () => {
  const { store, lead } = setUp()
  const story: string[] = []
  let number = 0
  const leading = startLeading({ store, log: silentLog }, () => {
    const mine = ++number
    story.push(`begin ${mine}`)
    return {
      async stop() {
        await settled()
        story.push(`end ${mine}`)
      },
    }
  })
  await settled()
  assert.deepEqual(story, [])
  await lead(1)
  await lead(null)
  await lead(3)
  // Told twice, it is the same leadership.
  await lead(3)
  // Another in between was missed: what was decided under the earlier one must not be written under this one.
  await lead(5)
  await settled()
  await leading.stop()
  await lead(6)
  assert.deepEqual(story, ['begin 1', 'end 1', 'begin 2', 'end 2', 'begin 3', 'end 3'])
})

test('a leader commits with the fencing token it began with, also when it leads again by then', async () => {
  const { store, lead, fencingTokens } = setUp()
  const given: Store[] = []
  startLeading({ store, log: silentLog }, (asLeader) => {
    given.push(asLeader)
    return { stop: () => {} }
  })
  await lead(1)
  await lead(4)
  const [earlier, later] = given as [Store, Store]
  await earlier.commit(change)
  await later.commit(change)
  assert.deepEqual(
    fencingTokens.map((fencingToken) => fencingToken?.number),
    [1, 4],
  )
  assert.equal(await later.forget(0), 7)
  await assert.rejects(earlier.forget(0), StaleReplica)
  await assert.rejects(earlier.keepWebhookProgress({ after: null, settled: [] }), StaleReplica)
})

test('what could not be ended does not keep the next from beginning', async () => {
  const { store, lead } = setUp()
  let begun = 0
  startLeading({ store, log: silentLog }, () => {
    begun++
    return { stop: () => Promise.reject(new Error('stuck')) }
  })
  await lead(1)
  await lead(null)
  await lead(2)
  assert.equal(begun, 2)
})
