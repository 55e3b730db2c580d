import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import {
  enrolledAs,
  fallenBack,
  mergeWithdrawn,
  provenCurrent,
  renewedTo,
  requestFor,
  withRequest,
  type Credentials,
  type Generation,
  type Identity,
  type KeyRequest,
} from './credentials.ts'

const generation = (serial: string, proven: boolean): Generation => ({
  keyPem: `key of ${serial}`,
  chainPem: `certificate of key of ${serial}`,
  rootPem: null,
  serial,
  proven,
  issuedAtMs: 0,
  notAfterMs: 1,
})

const identity: Identity = {
  source: 'plane',
  nodeId: 'gpu-001',
  domain: 'example.test',
  epoch: 1,
  profile: { name: 'x', key_storage: 'file', key_types: ['p256'], lifetime_ms: 1, renew_from: 0.5, renew_to: 0.6 },
  endpoints: { id: 'r', revision: 1, runtime: ['https://a'], stream: ['wss://a'] },
  roots: ['root'],
  trustRevision: 0,
  withdrawnIssuers: [],
  issuerRoots: { revision: 0, roots: [] },
  graceMs: 1,
  understands: [],
  marked: false,
  origin: { url: 'https://a', rootFingerprint: 'ab', usedSecretHash: null },
  current: generation('0', false),
  previous: null,
  counter: null,
  recovery: null,
  clockToleranceMs: 300_000,
}

const request = (purpose: KeyRequest['purpose']): KeyRequest => ({
  purpose,
  keyType: 'p256',
  keyPem: 'k',
  csrPem: 'c',
  sinceMs: 0,
  recoveryKey: null,
  insteadOf: null,
  madeFor: null,
})

type Event = 'renewed' | 'proven' | 'unknown to the plane' | 'request'

test('in any order of events there is a key for the certificate in force, and one that worked is kept until the next has', () => {
  const events = fc.array(fc.constantFrom<Event>('renewed', 'proven', 'unknown to the plane', 'request'), {
    maxLength: 40,
  })
  fc.assert(
    fc.property(events, (happened) => {
      let state: Credentials = enrolledAs({ ...identity, current: generation('0', true) })
      let serial = 0
      for (const event of happened) {
        const now: Identity = state.identity ?? assert.fail('the identity is gone')
        if (event === 'renewed') state = renewedTo(now, generation(String(++serial), false), now)
        if (event === 'proven') state = { ...state, identity: provenCurrent(now) }
        if (event === 'unknown to the plane') state = { ...state, identity: fallenBack(now) ?? now }
        if (event === 'request') state = withRequest(state, request({ kind: 'renew', serial: now.current.serial }))
        const { current, previous }: Identity = state.identity ?? assert.fail('the identity is gone')
        for (const each of [current, ...(previous === null ? [] : [previous])]) {
          assert.equal(each.chainPem, `certificate of ${each.keyPem}`)
        }
        assert.ok(!(current.proven && previous !== null), 'a proven generation needs no previous one')
      }
    }),
  )
})

test('an open request is repeated only for what it was made for', () => {
  const state = withRequest(enrolledAs(identity), request({ kind: 'renew', serial: '0' }))
  assert.notEqual(requestFor(state, { kind: 'renew', serial: '0' }, 'p256'), null)
  assert.equal(requestFor(state, { kind: 'renew', serial: '1' }, 'p256'), null)
  assert.equal(requestFor(state, { kind: 'renew', serial: '0' }, 'p384'), null)
  assert.equal(requestFor(state, { kind: 'enroll' }, 'p256'), null)
})

test('a certificate that has worked is never given up for an older one', () => {
  const state = renewedTo({ ...identity, current: generation('0', true) }, generation('1', false), identity)
  const proven = provenCurrent(state.identity ?? assert.fail())
  assert.equal(fallenBack(proven), null)
})

test('a withdrawn authority stays withdrawn, also after an answer of a replica that does not know it yet', () => {
  assert.deepEqual(mergeWithdrawn(['a'], undefined), ['a'])
  assert.deepEqual(mergeWithdrawn(['a'], []), ['a'])
  assert.deepEqual(mergeWithdrawn(['a'], ['b', 'a']), ['b', 'a'])
})

test('not more are kept than there is room for, the latest first', () => {
  const many = Array.from({ length: 70 }, (_, at) => `k${at}`)
  assert.deepEqual(mergeWithdrawn(['old'], many), many.slice(0, 64))
})

test('R-050: an open request is repeated where the plane asked for another type of key in place of the wanted one', () => {
  const enrolling = { kind: 'enroll' } as const
  const credentials: Credentials = {
    identity: null,
    request: { ...request(enrolling), keyType: 'ed25519', insteadOf: 'p256' },
  }
  assert.equal(requestFor(credentials, enrolling, 'p256'), credentials.request)
  assert.equal(requestFor(credentials, enrolling, 'p384'), null)
})
