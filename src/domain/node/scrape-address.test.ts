import assert from 'node:assert/strict'
import { test } from 'node:test'
import { expectDecided, expectRefused } from '../../../test/fakes/expect-decision.ts'
import { alice, nodeRow, noonMs } from '../../../test/fakes/sample-rows.ts'
import { decideScrapeAddress, isScrapeAddress } from './scrape-address.ts'

const decide = (address: string | null, was: string | null = null) =>
  decideScrapeAddress({ node: nodeRow('active', { scrapeAddress: was }), address, by: alice, nowMs: noonMs })

test('an address is kept and journaled, and so is its end; a repeat is not written', () => {
  const { node, change } = expectDecided(decide('10.0.0.7:9100'))
  assert.equal(node.scrapeAddress, '10.0.0.7:9100')
  assert.equal(change.entries[0]?.type, 'node.scrape_address_changed')
  assert.deepEqual(change.entries[0]?.body, { address: '10.0.0.7:9100', was: null })
  assert.equal(expectDecided(decide(null, 'a:1')).node.scrapeAddress, null)
  assert.deepEqual(decide('a:1', 'a:1'), { kind: 'unchanged' })
})

test('a revoked node is not scraped, and a text that is no address is refused', () => {
  const facts = { node: nodeRow('revoked'), address: 'a:1', by: alice, nowMs: noonMs }
  expectRefused(decideScrapeAddress(facts), 'NODE_REVOKED')
  expectRefused(decide('10.0.0.7'), 'REQUEST_INVALID', /HOST:PORT/)
})

test('names, IPv4 and IPv6 addresses with a port are addresses, and nothing else is', () => {
  for (const text of ['node-7.rack.internal:9100', '10.0.0.7:1', '[fd00::7]:65535'])
    assert.ok(isScrapeAddress(text), text)
  for (const text of [
    '',
    'a',
    'a:',
    ':9',
    'a:0',
    'a:65536',
    'fd00::7:9',
    'http://a:9',
    'a:9/x',
    'a b:9',
    '-a:9',
    'a:9\n',
  ])
    assert.ok(!isScrapeAddress(text), text)
})
