import assert from 'node:assert/strict'
import { test } from 'node:test'
import { outputOf } from '../../../test/fakes/programs-authority.ts'
import { faultOfOutputs, leafDueAtMs, needsLeaf, termsOf } from './wanted-outputs.ts'

const output = outputOf({ lifetime_ms: 1_000_000 })
const leaf = { ...termsOf(output, 3), serial: 'a1', issuedAtMs: 0, notAfterMs: 1_000_000 }

test('a leaf is renewed between half and two thirds of its lifetime, each at a time of its own', () => {
  const dues = Array.from({ length: 500 }, (_, at) => leafDueAtMs({ ...leaf, serial: `a${at}` }, output.lifetime_ms))
  assert.ok(dues.every((due) => due >= 500_000 && due <= 666_667))
  assert.ok(new Set(dues).size > 400)
  const due = leafDueAtMs(leaf, output.lifetime_ms)
  assert.equal(needsLeaf(output, leaf, 3, due - 1), false)
  assert.equal(needsLeaf(output, leaf, 3, due), true)
})

test('where the lifetime was shortened, a leaf is renewed by the shorter one', () => {
  assert.ok(leafDueAtMs(leaf, 10_000) <= 6_667)
})

test('another epoch, name, key type or usage makes another leaf due; the order of names does not', () => {
  assert.equal(needsLeaf(output, null, 3, 0), true)
  assert.equal(needsLeaf({ ...output, names: [...output.names].reverse() }, leaf, 3, 0), false)
  for (const change of [{ names: [] }, { key_type: 'p384' }, { usage: 'both' }] as const)
    assert.equal(needsLeaf({ ...output, ...change, names: [...(change.names ?? output.names)] }, leaf, 3, 0), true)
  assert.equal(needsLeaf(output, leaf, 4, 0), true)
})

test('two outputs of one name, or a key that everyone may read, are no configuration', () => {
  const mode = (key_mode: number) => outputOf({ files: { ...output.files, key_mode } })
  assert.equal(faultOfOutputs([output, outputOf({ name: 'db' })]), null)
  assert.match(faultOfOutputs([output, output]) ?? '', /two outputs/)
  for (const wrong of [0o604, 0o644, 0o700, 0o407]) assert.match(faultOfOutputs([mode(wrong)]) ?? '', /everyone/)
  for (const right of [0o400, 0o440, 0o600, 0o640, 0o660]) assert.equal(faultOfOutputs([mode(right)]), null)
})
