import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { alice as by, nodeRow, noonMs, row } from '../../../test/fakes/sample-rows.ts'
import { decideElsewhere, decideTakeClaims } from './claim-rules.ts'
import { claimKeptMs, type Claim, type PeerDomain } from './peer-domain.ts'

const peer: PeerDomain = {
  name: 'b.example',
  url: 'https://b.example:8443',
  roots: [],
  statementKeys: [],
  addedAtMs: 1,
  addedBy: 'operator:carol',
  removedAtMs: null,
}

const claim = (changes: Partial<Claim> = {}): Claim => ({
  hardware: 'bmc:CN7X',
  domain: 'b.example',
  node: 'node-b',
  state: 'active',
  atMs: noonMs,
  receivedAtMs: noonMs,
  ...changes,
})

const take = (said: Claim, known: Claim | null, nowMs = noonMs) =>
  decideTakeClaims({ peer: row(peer), claims: [{ said, known: known === null ? null : row(known) }], by, nowMs })

test('an older word that comes last is not taken, and the same word twice writes nothing', () => {
  assert.equal(take(claim({ state: 'inactive', atMs: 1 }), claim({ atMs: 2 })).kind, 'unchanged')
  assert.equal(take(claim({ atMs: noonMs + 1 }), claim()).kind, 'unchanged')
  assert.equal(take(claim({ state: 'inactive', atMs: 3 }), claim({ atMs: 2 })).kind, 'decided')
})

test('a claim that is repeated in time is kept, so that it does not run out while it is true', () => {
  assert.equal(take(claim(), claim({ receivedAtMs: noonMs - claimKeptMs }), noonMs).kind, 'decided')
})

test('claims rely on the peer being one: removed meanwhile, it is not believed', () => {
  const done = take(claim(), null)
  assert(done.kind === 'decided')
  assert.ok(done.change.reads.some(({ row: kind, key }) => kind === 'peer-domain' && key === 'b.example'))
})

test('active_elsewhere is set exactly while the node is active here and a claim says that it is active there', () => {
  const membership = fc.constantFrom('registered', 'enrolled', 'active', 'inactive', 'quarantined' as const)
  const states = fc.array(fc.constantFrom('active' as const, 'inactive' as const), { maxLength: 3 })
  fc.assert(
    fc.property(membership, states, fc.boolean(), (kind, said, raised) => {
      const conditions = raised ? [{ name: 'active_elsewhere' as const, sinceMs: 1, reason: 'x', evidence: {} }] : []
      const node = nodeRow(kind, { conditions })
      const claims = said.map((state, at) => claim({ state, domain: `${at}.example` }))
      const done = decideElsewhere({ node, claims, by, nowMs: noonMs })
      const after = done.kind === 'decided' ? done.node : node.value
      const wanted = kind === 'active' && said.includes('active')
      assert.equal(
        after.conditions.some(({ name }) => name === 'active_elsewhere'),
        wanted,
      )
    }),
  )
})

test('a claim that was not repeated for so long expires', () => {
  const old = claim({ receivedAtMs: noonMs - claimKeptMs })
  assert.equal(decideElsewhere({ node: nodeRow('active'), claims: [old], by, nowMs: noonMs }).kind, 'unchanged')
})
