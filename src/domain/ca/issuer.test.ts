import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { keyRecovery, memberships, minute, nodeRow, noonMs, profileRow } from '../../../test/fakes/sample-rows.ts'
import { effectOfWithdrawal, withdrawalBarred, withdrawn, withdrawnWith, type IssuerRow } from './issuer.ts'
import type { Membership, Node } from '#domain/core/node.ts'

const issuer = (id: string, changes: Partial<IssuerRow> = {}): IssuerRow => ({
  id,
  role: 'issuing',
  der: '',
  parent: 'root',
  custody: 'file',
  notBeforeMs: 0,
  notAfterMs: noonMs,
  retiredAtMs: null,
  compromisedAtMs: null,
  ...changes,
})

test('roots cannot be withdrawn, whichever they are; what stands below one can', () => {
  assert.equal(withdrawalBarred(null)?.code, 'ISSUER_NOT_FOUND')
  assert.equal(withdrawalBarred(issuer('r', { role: 'root' }))?.code, 'ISSUER_NOT_WITHDRAWABLE')
  assert.equal(withdrawalBarred(issuer('r', { role: 'recovery' }))?.code, 'ISSUER_NOT_WITHDRAWABLE')
  assert.equal(withdrawalBarred(issuer('d', { role: 'domain-ca' })), null)
  assert.equal(withdrawalBarred(issuer('i', { retiredAtMs: 5 })), null)
})

test('an authority is withdrawn with all below it and nothing else, once, in whatever order the store has them', () => {
  const parents = fc.array(fc.nat(), { minLength: 1, maxLength: 12 })
  fc.assert(
    fc.property(parents, fc.nat(), fc.nat(), (picks, which, seed) => {
      const all = picks.map((pick, at) => issuer(`i${at}`, { parent: at === 0 ? 'root' : `i${pick % at}` }))
      const parentOf = new Map(all.map(({ id, parent }) => [id, parent]))
      const target = `i${which % all.length}`
      const isBelow = (id: string): boolean => id === target || (parentOf.has(id) && isBelow(parentOf.get(id) ?? ''))
      const shuffled = all.toSorted((a, b) => ((a.id.length * 7 + seed) % 5) - ((b.id.length * 3 + seed) % 5))
      const hit = withdrawnWith(target, shuffled)
      assert.deepEqual(
        hit.map(({ id }) => id).sort(),
        all
          .map(({ id }) => id)
          .filter(isBelow)
          .sort(),
      )
      const after = shuffled.map((one) => (hit.includes(one) ? withdrawn(one, noonMs) : one))
      assert.deepEqual(withdrawnWith(target, after), [])
      assert.ok(after.every((one) => !hit.some(({ id }) => id === one.id) || one.retiredAtMs !== null))
    }),
  )
})

test('when it retired before, that stays so', () => {
  const { retiredAtMs, compromisedAtMs } = withdrawn(issuer('i', { retiredAtMs: 5 }), noonMs)
  assert.deepEqual([retiredAtMs, compromisedAtMs], [5, noonMs])
})

test('whom a withdrawal throws out, and how each comes back', () => {
  const effect = (kind: Membership['kind'], profile: string, changes: Partial<Node> = {}, issuers = ['ca1']) =>
    effectOfWithdrawal(nodeRow(kind, changes).value, profileRow(profile).value, issuers, null, noonMs)?.comesBack ??
    null
  const rehearsal = { epoch: 4, outcome: 'passed', sinceMs: noonMs - minute } as Node['rehearsal']
  const recovery = keyRecovery()
  assert.equal(effect('active', 'gpu-cloud', { recovery, rehearsal }), 'by itself')
  assert.equal(effect('active', 'gpu-cloud', { recovery }), 'unproven')
  assert.equal(effect('active', 'gpu-cloud'), 'not')
  assert.equal(effect('active', 'hpc-diskless'), 'joins')
  assert.equal(effect('active', 'mesh-paas', { recovery, rehearsal }), 'approval')
  assert.equal(effect('active', 'gpu-cloud', { recovery, rehearsal }, ['ca2']), null)
  assert.equal(effect('registered', 'gpu-cloud'), null)
  assert.equal(effect('revoked', 'gpu-cloud'), null)
  const shown = { ...memberships.quarantined, slots: memberships.active.slots }
  assert.equal(effect('quarantined', 'gpu-cloud', { recovery, rehearsal, membership: shown }), 'not')
})
