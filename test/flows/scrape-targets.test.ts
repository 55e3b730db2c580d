// Scrape addresses: registered by an operator, read by a Prometheus with a viewer's key.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { setUpCli } from './cli-setup.ts'

type Target = { readonly targets: readonly string[]; readonly labels: Readonly<Record<string, string>> }

test('Prometheus finds the nodes that an operator gave a scrape address, with their vCluster, profile and domain', async (t) => {
  const plane = await setUpCli(t)
  const muster = async (...words: string[]): Promise<string> => {
    const said = await plane.muster(...words)
    assert.equal(said.code, exitCodes.ok, said.err)
    return said.out
  }
  const targets = async (query = ''): Promise<readonly Target[]> => {
    const { status, headers, body } = await plane.call('viewer', 'GET', `/v1/prometheus/targets${query}`)
    assert.equal(status, 200)
    assert.equal(headers['content-type'], 'application/json')
    return body
  }
  for (const id of ['gpu-001', 'gpu-002', 'gpu-003']) await muster('node', 'enroll', id)
  assert.deepEqual(await targets(), [])

  assert.equal(
    await muster('node', 'scrape-address', 'gpu-001', '10.0.0.7:9100'),
    'gpu-001: scrape address 10.0.0.7:9100\n',
  )
  await muster('node', 'scrape-address', 'gpu-002', '[fd00::7]:9100')
  await muster('vcluster', 'create', 'training')
  await muster('node', 'assign', 'gpu-001', '--to', 'training')
  const [first, second, ...others] = await targets()
  const { domain, profile } = first?.labels ?? {}
  assert.deepEqual(first, {
    targets: ['10.0.0.7:9100'],
    labels: { node: 'gpu-001', vcluster: 'training', profile, domain },
  })
  assert.deepEqual([second?.targets, second?.labels['vcluster'], others.length], [['[fd00::7]:9100'], '', 0])
  const parts = [...(await targets('?shard=0/2')), ...(await targets('?shard=1/2'))]
  assert.deepEqual(parts.map(({ labels }) => labels['node']).sort(), ['gpu-001', 'gpu-002'])
  assert.match(await muster('node', 'show', 'gpu-001'), /^scraped at +10\.0\.0\.7:9100$/m)
  assert.match(await muster('journal', 'list', '--type', 'node.scrape_address_changed'), /10\.0\.0\.7:9100/)

  await muster('node', 'scrape-address', 'gpu-001', '--remove')
  await muster('node', 'revoke', 'gpu-002', '--reason', 'stolen')
  assert.deepEqual(await targets(), [])
})

test('an address without a port, a missing address and a node that is not there are refused', async (t) => {
  const plane = await setUpCli(t)
  await plane.muster('node', 'enroll', 'gpu-001')
  for (const [words, code, text] of [
    [['gpu-001', '10.0.0.7'], exitCodes.refused, /HOST:PORT/],
    [['gpu-001'], exitCodes.usage, /--remove/],
    [['gpu-001', '10.0.0.7:1', '--remove'], exitCodes.usage, /--remove/],
    [['gpu-009', '10.0.0.7:9100'], exitCodes.notFound, /gpu-009/],
  ] as const) {
    const said = await plane.muster('node', 'scrape-address', ...words)
    assert.equal(said.code, code, words.join(' '))
    assert.match(said.err, text)
  }
})
