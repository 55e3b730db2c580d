import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { EntryDraft } from '#domain/core/journal-entry.ts'
import { canonicalJson } from './canonical-json.ts'
import { chainedHash, entryBytes, genesisHash, hexOf, placeEntry, scarredHash, signedBytes } from './journal-chain.ts'

const word = fc.string({ unit: 'binary' })
const maybe = fc.option(word)
const draft: fc.Arbitrary<EntryDraft> = fc.record({
  type: fc.constantFrom('host.enrolled', 'refused'),
  atMs: fc.maxSafeNat(),
  actor: word,
  source: maybe,
  node: maybe,
  epoch: fc.option(fc.nat()),
  token: maybe,
  issuer: maybe,
  serial: maybe,
  correlation: maybe,
  body: fc.dictionary(word, fc.oneof(word, fc.integer(), fc.boolean(), fc.constant(null), fc.array(word))),
})
const place = { chain: 'C', sequence: 7, domain: 'd "quoted"', commit: 'OP', index: 2 }

test('the bytes of an entry are its canonical JSON', () => {
  fc.assert(
    fc.property(draft, (given) => {
      const entry = placeEntry(given, place)
      assert.equal(entryBytes(entry, canonicalJson(entry.body)), canonicalJson(entry))
    }),
  )
})

test('an entry without a correlation falls back to the commit it came in', () => {
  fc.assert(
    fc.property(draft, (given) => {
      assert.equal(placeEntry(given, place).correlation, given.correlation ?? 'OP')
    }),
  )
})

test('chains of two domains, two hashes and a scar never meet', () => {
  const genesis = genesisHash('C', 'a.example')
  const hashes = [genesis, genesisHash('C', 'b.example'), genesisHash('D', 'a.example'), scarredHash(genesis)]
  const all = [...hashes, ...hashes.map((hash) => chainedHash(hash, '{}'))].map(hexOf)
  assert.equal(new Set(all).size, all.length)
})

test('what is signed differs by purpose, place, hash and key', () => {
  const hash = genesisHash('C', 'a.example')
  const at = { chain: 'C', sequence: 1, hash }
  const signed = [
    signedBytes('head', at, 'k'),
    signedBytes('base', at, 'k'),
    signedBytes('head', at, 'other'),
    signedBytes('head', { ...at, sequence: 2 }, 'k'),
    signedBytes('head', { ...at, chain: 'D' }, 'k'),
    signedBytes('head', { ...at, hash: scarredHash(hash) }, 'k'),
  ].map(hexOf)
  assert.equal(new Set(signed).size, signed.length)
})
