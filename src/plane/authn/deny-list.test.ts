import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Denial } from '#domain/core/certificate.ts'
import { openFeed } from '#plane/core/feed.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { testPrincipal } from '../../../test/fakes/test-session.ts'
import { openDenyList } from './deny-list.ts'

const credential = { by: 'certificate', issuer: 'ca1', serial: 'a1', spki: 'key-of-a1' } as const
const story = { atMs: 0, untilMs: 10, why: 'x', reason: 'unspecified' } as const

test('who was let in is let in no more by a denial of its certificate, its epoch or its authority, and by no other', async () => {
  const principal = testPrincipal('gpu-001', { epoch: 4, credential })
  const codeWith = async (denial: Denial): Promise<string | null> => {
    const feed = openFeed()
    const list = await openDenyList({ denials: async () => [], issuers: async () => [], get: async () => null }, feed)
    feed.publish({ kind: 'committed', origin: 'here', writes: [{ put: 'denial', value: denial }], entries: [] })
    const code = list.refusalOf(principal)?.code ?? null
    list.prune(story.untilMs)
    assert.equal(list.refusalOf(principal), null)
    return code
  }
  assert.equal(await codeWith({ kind: 'certificate', issuer: 'ca1', serial: 'a1', ...story }), 'CLIENT_CERT_DENIED')
  assert.equal(await codeWith({ kind: 'epoch', node: 'gpu-001', epoch: 4, ...story }), 'CLIENT_CERT_DENIED')
  assert.equal(await codeWith({ kind: 'issuer', issuer: 'ca1', ...story }), 'ISSUER_WITHDRAWN')
  assert.equal(await codeWith({ kind: 'certificate', issuer: 'ca1', serial: 'a2', ...story }), null)
  assert.equal(await codeWith({ kind: 'epoch', node: 'gpu-001', epoch: 3, ...story }), null)
  assert.equal(await codeWith({ kind: 'issuer', issuer: 'ca2', ...story }), null)
})

test('A5: who was let in is let in no more once its key is banned, as a channel that was about to open', async () => {
  const feed = openFeed()
  const list = await openDenyList({ denials: async () => [], issuers: async () => [], get: async () => null }, feed)
  const ban = { put: 'key-ban', value: { spki: credential.spki, why: 'stolen', atMs: 0 } } as const
  feed.publish({ kind: 'committed', origin: 'elsewhere', writes: [ban], entries: [] })
  assert.equal(list.refusalOf(testPrincipal('gpu-002', { credential }))?.code, 'CLIENT_CERT_DENIED')
  assert.equal(list.refusalOf(testPrincipal('gpu-002', { credential: { ...credential, spki: 'another' } })), null)
})

test('a denial that was made before its commit is taken back when the store has no such row, unless it is denied again meanwhile', async () => {
  const denial: Denial = { kind: 'epoch', node: 'gpu-001', epoch: 4, ...story }
  const principal = testPrincipal('gpu-001', { epoch: 4, credential })
  const codeAfter = async (inStore: boolean, again: boolean): Promise<string | null> => {
    const feed = openFeed()
    const deny = (): void =>
      feed.publish({ kind: 'committed', origin: 'here', writes: [{ put: 'denial', value: denial }], entries: [] })
    const get = async () => {
      if (again) deny()
      return inStore ? { value: denial, version: 1 } : null
    }
    const store = { denials: async () => [], issuers: async () => [], get } as unknown as Store
    const list = await openDenyList(store, feed)
    deny()
    await list.reload(denial)
    return list.refusalOf(principal)?.code ?? null
  }
  assert.equal(await codeAfter(false, false), null)
  assert.equal(await codeAfter(true, false), 'CLIENT_CERT_DENIED')
  assert.equal(await codeAfter(false, true), 'CLIENT_CERT_DENIED')
})
