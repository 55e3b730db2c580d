import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Change, entry } from '#domain/core/change.ts'
import type { Node } from '#domain/core/node.ts'
import { placeOrder, type IssuedCertificate, type SigningOrder } from '#domain/core/certificate.ts'
import { toPem } from '#pki/pem.ts'
import { noOrders } from '../../../test/fakes/no-orders.ts'
import { refuse } from '#domain/core/refusal.ts'
import { noKeyClaims } from '#domain/identity/key-claim.ts'
import type { Admitted, Repeated } from '#domain/identity/node-certificate.ts'
import { openFeed } from '#plane/core/feed.ts'
import type { Committed } from '#plane/store/contract/store.ts'
import { alice, domainRow, nodeRow, noonMs, profileRow, slot } from '../../../test/fakes/sample-rows.ts'
import type { FlowCore } from '#plane/core/core.ts'
import { commitIssued } from '#plane/core/issued-certificate.ts'
import { issue, type Signers } from './issue.ts'

const change: Change = { reads: [], writes: [], entries: [entry(alice, 0, 'node.renewed', {}, {})] }
const committed: Committed = { kind: 'committed', origin: 'here', writes: [], entries: [] }
const before: Node = nodeRow('active', { counter: 5 }).value
const facts = { profile: profileRow('gpu-cloud'), domain: domainRow(), keyClaims: noKeyClaims }
const order = placeOrder({ id: 'o1' } as SigningOrder)
const admitted = { kind: 'admitted', facts, before, epoch: 4, order } as unknown as Admitted
const signed = { issuer: 'ca1', serial: 'b1', spki: 'new-key', der: 'AA==' }

/** Loses as many races as it is told to; `steps` says what was done, in order. */
const setUp = (races = 0) => {
  const steps: string[] = []
  const commits: Change[] = []
  const feed = openFeed()
  feed.subscribe('metrics', () => void steps.push('publish'))
  const deps = {
    feed,
    store: {
      async commit(asked: Change) {
        steps.push('commit')
        commits.push(asked)
        return commits.length <= races ? 'lost-race' : committed
      },
      get: async (row: string) => (row === 'certificate' ? { value: signed, version: 1 } : { version: 7 }),
    },
    issuer: {
      async sign({ id }: SigningOrder) {
        steps.push(`sign ${id}`)
        return signed
      },
      rowRead: (key: string) => ({ row: 'issuer', key, version: 7 }),
      lookAgain: async () => void steps.push('look again'),
      withdrawnIssuers: () => [],
    },
    orders: noOrders,
    recovery: { bearerFor: ({ counter, spki }: { counter: number; spki: string }) => `${counter} ${spki}` },
  } as unknown as FlowCore & Signers
  const request = {
    async decide(): Promise<Admitted> {
      steps.push('decide')
      return admitted
    },
    limit: async () => null,
    intend: () => ({ reads: [], writes: [] }),
    ...{ csr: '', purpose: 'renewal' as const, roots: null },
    async record() {
      steps.push('record')
      return { change, node: { ...before, counter: 6 } }
    },
  }
  return { deps, request, steps, commits }
}

test('a certificate is decided, signed, recorded, committed and published, in this order', async () => {
  const { deps, request, steps, commits } = setUp()
  const outcome = await issue(deps, deps, request)
  assert.deepEqual(outcome, {
    kind: 'issued',
    node: { ...before, counter: 6 },
    profile: facts.profile.value,
    domain: facts.domain.value,
    certificate: signed,
  })
  assert.deepEqual(steps, ['decide', 'sign o1', 'record', 'commit', 'publish'])
  assert.deepEqual(commits[0]?.reads, [{ row: 'issuer', key: 'ca1', version: 7 }])
})

test('after a lost race everything is decided and signed again, and nothing of the first try is published', async () => {
  const { deps, request, steps } = setUp(1)
  assert.equal((await issue(deps, deps, request)).kind, 'issued')
  const once = ['decide', 'sign o1', 'record', 'commit']
  assert.deepEqual(steps, [...once, ...once, 'publish'])
})

test('beyond its rate limit a node gets nothing signed', async () => {
  const { deps, request, steps } = setUp()
  const busy = refuse('RATE_LIMITED')
  assert.equal(await issue(deps, deps, { ...request, limit: async () => busy }), busy)
  assert.deepEqual(steps, ['decide'])
})

test('a repeated request is answered with the certificate in the store, and the token it came with is used up first', async () => {
  const { deps, request, steps, commits } = setUp(1)
  const repeated: Repeated = {
    ...{ kind: 'repeat', facts, node: before, slot: { ...slot('b1'), notAfterMs: noonMs }, spends: change },
  }
  const outcome = await issue(deps, deps, { ...request, decide: async () => repeated })
  assert(outcome.kind === 'issued')
  assert.deepEqual([outcome.certificate, outcome.node], [signed, before])
  assert.deepEqual(steps, ['commit', 'commit', 'publish'])
  assert.deepEqual(commits, [change, change])
})

test('what an outside issuer has signed is declined before a request that was repeated meanwhile is answered', async () => {
  const { deps, request, steps } = setUp()
  const repeated: Repeated = {
    ...{ kind: 'repeat', facts, node: before, slot: { ...slot('b1'), notAfterMs: noonMs }, spends: change },
  }
  const orders: Signers['orders'] = {
    ...noOrders,
    choose: async () => ({ issuer: 'elsewhere', reads: [], hasOther: false }),
    async place() {
      steps.push('order')
      return {
        ...{ kind: 'signed', certificate: signed as unknown as IssuedCertificate, issuer: 'elsewhere' },
        answers: async () => true,
        completion: async () => ({ reads: [], writes: [], entries: [] }),
        done: () => void steps.push('done'),
        decline: async (why) => void steps.push(`declined: ${why}`),
      }
    },
  }
  const key = {
    ...admitted,
    order: { ...order, publicKey: new Uint8Array() },
    facts: { ...facts, keyClaims: noKeyClaims },
  }
  const verdicts = [key as unknown as Admitted, repeated]
  const decide = async () => verdicts.shift() ?? repeated
  const csr = toPem('CERTIFICATE REQUEST', new Uint8Array([0x30, 0]))
  const outcome = await issue(deps, { ...deps, orders }, { ...request, csr, decide })
  assert.equal(outcome.kind, 'issued')
  assert.deepEqual(steps, ['order', 'declined: another one was issued meanwhile', 'commit', 'publish'])
})

test('what hands a certificate out relies on the row of its signer as this plane knows it; a newer one is looked at', async () => {
  const seen: Change[] = []
  let looks = 0
  const deps = {
    store: {
      commit: async (asked: Change) => {
        seen.push(asked)
        return 'lost-race'
      },
      get: async () => ({ version: 8 }),
    },
    issuer: {
      rowRead: (key: string) => ({ row: 'issuer', key, version: 7 }),
      lookAgain: async () => void looks++,
      withdrawnIssuers: () => ['withdrawn'],
    },
  } as unknown as FlowCore & Signers
  assert.equal(await commitIssued(deps, deps.issuer, { issuer: 'ca1' }, change), 'lost-race')
  assert.deepEqual(seen[0]?.reads, [{ row: 'issuer', key: 'ca1', version: 7 }])
  assert.equal(looks, 1)
  assert.equal(await commitIssued(deps, deps.issuer, { issuer: 'withdrawn' }, change), 'lost-race')
  assert.equal(seen.length, 1, 'what a withdrawn authority has signed is not even tried')
})
