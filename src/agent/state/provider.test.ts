import assert from 'node:assert/strict'
import { test } from 'node:test'
import { trouble } from '#agent/core/trouble.ts'
import type { IdentitySource } from './credentials.ts'
import { betterThan, firstIdentity, type IdentityProvider, type Provided } from './provider.ts'

const none = trouble('no_identity', 'There is none.', 'Make one')
const brokenSocket = trouble('socket_broken', 'The socket is there and does not answer.', 'Look at it')

const setUp = (answers: readonly (readonly [IdentitySource, Provided])[]) => {
  const asked: IdentitySource[] = []
  const providers: IdentityProvider[] = answers.map(([source, provided]) => ({
    source,
    provide: () => {
      asked.push(source)
      return Promise.resolve(provided)
    },
  }))
  const found = firstIdentity(providers, 'start', none, new AbortController().signal)
  return { asked, found, providers }
}

test('the first source that has an identity is the one in use; the rest are not asked', async () => {
  const { asked, found } = setUp([
    ['spire', { kind: 'not-mine' }],
    ['plane', { kind: 'identity' }],
    ['static', { kind: 'not-mine' }],
  ])
  assert.deepEqual(await found, { kind: 'identity', source: 'plane', passedOver: [] })
  assert.deepEqual(asked, ['spire', 'plane'])
})

test('a better source that is broken is reported, and does not disable one that works', async () => {
  const { found } = setUp([
    ['spire', { kind: 'broken', trouble: brokenSocket }],
    ['plane', { kind: 'identity' }],
  ])
  const passedOver = [{ source: 'spire', trouble: brokenSocket }]
  assert.deepEqual(await found, { kind: 'identity', source: 'plane', passedOver })
})

test('a no is not gotten around', async () => {
  const outcome = { kind: 'revoked', trouble: none } as const
  const { asked, found } = setUp([
    ['spire', { kind: 'failed', outcome }],
    ['plane', { kind: 'identity' }],
  ])
  assert.deepEqual(await found, { kind: 'failed', outcome })
  assert.deepEqual(asked, ['spire'])
})

test('where nothing works, the best source that is broken says why', async () => {
  const { found } = setUp([
    ['spire', { kind: 'not-mine' }],
    ['plane', { kind: 'broken', trouble: brokenSocket }],
  ])
  assert.deepEqual(await found, { kind: 'failed', outcome: { kind: 'misconfigured', trouble: brokenSocket } })
  const { found: nothing } = setUp([['plane', { kind: 'not-mine' }]])
  assert.deepEqual(await nothing, { kind: 'failed', outcome: { kind: 'misconfigured', trouble: none } })
})

test('better than a source are those before it', () => {
  const { providers } = setUp([
    ['spire', { kind: 'not-mine' }],
    ['plane', { kind: 'not-mine' }],
    ['static', { kind: 'not-mine' }],
  ])
  const names = (source: IdentitySource): string[] => betterThan(providers, source).map((each) => each.source)
  assert.deepEqual([names('spire'), names('plane'), names('static')], [[], ['spire'], ['spire', 'plane']])
})
