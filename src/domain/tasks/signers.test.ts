import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Row } from '#domain/core/change.ts'
import {
  decideFirstSigner,
  decideRenumber,
  decideRotate,
  decideRotateBack,
  decideRotateNow,
  decideSignersDue,
  decideWithdraw,
  isVerifier,
  signerStepMs,
  signingOf,
  type SignersDecided,
  type TaskSigners,
} from './signers.ts'

const by = { actor: 'operator:carol', source: null, correlation: null }
const toleranceMs = 60_000
const startMs = 1_700_000_000_000

/** A domain whose signers are changed one decision after the other. */
const domain = () => {
  let count = 0
  let nowMs = startMs
  const made = () => ({ key: String(++count).padStart(40, '0'), spki: `spki ${count}` })
  const first = decideFirstSigner({ made: made(), by, nowMs })
  let row: Row<TaskSigners> = { value: first.signers, version: 1 }
  const facts = () => ({ row, made: made(), toleranceMs, by, nowMs })
  const take = <V extends { readonly kind: string }>(verdict: V): V => {
    if (verdict.kind === 'decided') {
      row = { value: (verdict as unknown as SignersDecided).signers, version: row.version + 1 }
    }
    return verdict
  }
  return {
    first,
    facts,
    take,
    row: () => row,
    pass: (ms: number) => void (nowMs += ms),
    states: () => row.value.signers.map(({ version, state }) => `${version} ${state.kind}`).sort(),
    due: () => {
      const verdict = decideSignersDue(facts())
      return verdict === null ? null : take(verdict)
    },
    keyOf: (version: number): string => row.value.signers.find((one) => one.version === version)?.key ?? 'none',
  }
}

const typesOf = (verdict: { readonly kind: string }): readonly string[] =>
  verdict.kind === 'decided' ? (verdict as unknown as SignersDecided).change.entries.map(({ type }) => type) : []

test('the first signer of a domain signs at once', () => {
  const { first, states } = domain()
  assert.deepEqual(states(), ['1 signing'])
  assert.deepEqual(first.change.reads, [{ row: 'task-signers', key: 'domain', version: 0 }])
  assert.deepEqual(typesOf(first), ['signer.created'])
})

test('a next signer is in statements for a day and the tolerance before it signs', () => {
  const it = domain()
  assert.deepEqual(typesOf(it.take(decideRotate(it.facts()))), ['signer.created'])
  assert.deepEqual(it.states(), ['1 signing', '2 next'])
  it.pass(signerStepMs + toleranceMs - 1)
  assert.equal(it.due(), null)
  it.pass(1)
  assert.deepEqual(typesOf(it.due() ?? { kind: 'none' }), ['signer.rotated'])
  assert.deepEqual(it.states(), ['1 grace', '2 signing'])
})

test('a signer in grace is retired when nothing it has signed can live any more', () => {
  const it = domain()
  it.take(decideRotateNow(it.facts()))
  assert.deepEqual(it.states(), ['1 grace', '2 signing'])
  it.pass(signerStepMs + toleranceMs - 1)
  assert.equal(it.due(), null)
  it.pass(1)
  assert.deepEqual(typesOf(it.due() ?? { kind: 'none' }), ['signer.retired'])
  assert.deepEqual(it.states(), ['1 retired', '2 signing'])
})

test('one rotation at a time: the second is refused, and --now lets the waiting one sign', () => {
  const it = domain()
  it.take(decideRotate(it.facts()))
  const again = decideRotate(it.facts())
  assert.ok(again.kind === 'refused' && again.code === 'SIGNER_ROTATING')
  assert.deepEqual(typesOf(it.take(decideRotateNow(it.facts()))), ['signer.rotated'])
  assert.deepEqual(it.states(), ['1 grace', '2 signing'])
})

test('a rollback drops a next signer that has signed nothing, else the one in grace signs again', () => {
  const it = domain()
  const none = decideRotateBack(it.facts())
  assert.ok(none.kind === 'refused' && none.code === 'SIGNER_NOT_IN_GRACE')
  it.take(decideRotate(it.facts()))
  assert.deepEqual(typesOf(it.take(decideRotateBack(it.facts()))), ['signer.retired'])
  assert.deepEqual(it.states(), ['1 signing', '2 retired'])
  it.take(decideRotateNow(it.facts()))
  assert.deepEqual(it.states(), ['1 grace', '2 retired', '3 signing'])
  it.take(decideRotateBack(it.facts()))
  assert.deepEqual(it.states(), ['1 signing', '2 retired', '3 grace'])
})

test('a withdrawn signer is replaced in the same change: by the next one, or by one that is made', () => {
  const it = domain()
  const made = it.take(decideWithdraw(it.facts(), { key: it.keyOf(1), reason: 'stolen' }))
  assert.deepEqual(typesOf(made), ['signer.withdrawn', 'signer.rotated'])
  assert.deepEqual(it.states(), ['1 withdrawn', '2 signing'])
  it.take(decideRotate(it.facts()))
  it.take(decideWithdraw(it.facts(), { key: it.keyOf(2), reason: 'stolen' }))
  assert.deepEqual(it.states(), ['1 withdrawn', '2 withdrawn', '3 signing'])
})

test('a withdrawal of a signer that signs nothing changes no other', () => {
  const it = domain()
  it.take(decideRotate(it.facts()))
  it.take(decideWithdraw(it.facts(), { key: it.keyOf(2), reason: 'stolen' }))
  assert.deepEqual(it.states(), ['1 signing', '2 withdrawn'])
  assert.equal(decideWithdraw(it.facts(), { key: it.keyOf(2), reason: 'again' }).kind, 'unchanged')
  const unknown = decideWithdraw(it.facts(), { key: 'f'.repeat(40), reason: 'stolen' })
  assert.ok(unknown.kind === 'refused' && unknown.code === 'SIGNER_NOT_FOUND')
})

test('a withdrawal names the first statement that hosts learn it from', () => {
  const it = domain()
  const before = it.row().value.number
  it.take(decideWithdraw(it.facts(), { key: it.keyOf(1), reason: 'stolen' }))
  const { number, signers } = it.row().value
  const state = signers.find(({ version }) => version === 1)?.state
  assert.ok(number > before)
  assert.ok(state?.kind === 'withdrawn' && state.sinceNumber === number)
})

test('a restored store goes on with a number above what it had handed out before', () => {
  const it = domain()
  it.pass(1000)
  it.take(decideRotate(it.facts()))
  const handedOut = it.row().value.number
  const restored = domain()
  restored.pass(5000)
  restored.take(decideRotate(restored.facts()))
  assert.ok(restored.row().value.number > handedOut)
})

test('a number that nodes have from before a restore is surpassed, and one from the future is not believed', () => {
  const it = domain()
  const { number } = it.row().value
  it.pass(5000)
  assert.equal(decideRenumber(it.facts(), number), null)
  assert.equal(decideRenumber(it.facts(), startMs + 5000 + toleranceMs + 1), null)
  const raised = decideRenumber(it.facts(), number + 70)
  assert.ok(raised !== null && raised.signers.number > number + 70)
  assert.deepEqual(raised.signers.signers, it.row().value.signers)
  assert.deepEqual(typesOf(raised), ['signer.renumbered'])
})

test('whatever happens, one signs, the number grows, no key comes back from withdrawal, and the row is bounded', () => {
  const step = fc.constantFrom('rotate', 'now', 'back', 'withdraw', 'withdraw any', 'an hour', 'a day', 'due')
  fc.assert(
    fc.property(fc.array(fc.tuple(step, fc.nat(30)), { maxLength: 60 }), (steps) => {
      const it = domain()
      const withdrawn = new Set<string>()
      for (const [what, which] of steps) {
        const before = it.row().value
        const { signers } = before
        const any = signers[which % signers.length]?.key ?? ''
        const key = what === 'withdraw' ? (signingOf(before)?.key ?? '') : any
        switch (what) {
          case 'rotate':
            it.take(decideRotate(it.facts()))
            break
          case 'now':
            it.take(decideRotateNow(it.facts()))
            break
          case 'back':
            it.take(decideRotateBack(it.facts()))
            break
          case 'withdraw':
          case 'withdraw any':
            if (it.take(decideWithdraw(it.facts(), { key, reason: 'stolen' })).kind === 'decided') withdrawn.add(key)
            break
          case 'an hour':
            it.pass(3_600_000)
            break
          case 'a day':
            it.pass(signerStepMs)
            break
          case 'due':
            it.due()
            break
        }
        const now = it.row().value
        assert.equal(now.signers.filter(({ state }) => state.kind === 'signing').length, 1)
        assert.ok(now.signers.filter(({ state }) => state.kind === 'next').length <= 1)
        assert.ok(now === before || now.number > before.number)
        assert.ok(now.signers.filter(isVerifier).every((one) => !withdrawn.has(one.key)))
        assert.equal(new Set(now.signers.map(({ version }) => version)).size, now.signers.length)
        assert.ok(now.signers.filter(isVerifier).length <= 8 && now.signers.length <= 24)
      }
    }),
  )
})
