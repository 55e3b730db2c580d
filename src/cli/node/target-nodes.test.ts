import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testCli } from '../../../test/fakes/test-cli.ts'
import { targetNodes, type Target } from './target-nodes.ts'

const target = (
  words: readonly string[],
  options: Parameters<typeof targetNodes>[1] = {},
  input = '',
): Promise<Target> => targetNodes(testCli({ input }).cli, options, words, 'drain')

test('ids alone are acted on; a glob, a filter or names from elsewhere are a selection', async () => {
  assert.deepEqual(await target(['gpu-1', 'gpu-2', 'gpu-1']), { kind: 'ids', ids: ['gpu-1', 'gpu-2'] })
  assert.deepEqual(await target(['gpu-*', 'hpc-1'], { connected: 'no', tag: ['Rack=R7'] }), {
    kind: 'selections',
    selections: [{ names: ['gpu-*', 'hpc-1'], connected: false, tags: ['rack=r7'] }],
  })
  assert.deepEqual(await target([], { vcluster: 'blue' }), { kind: 'selections', selections: [{ vcluster: 'blue' }] })
  assert.deepEqual(await target(['-'], {}, 'gpu-1\n'), { kind: 'selections', selections: [{ names: ['gpu-1'] }] })
})

test('more names than a request has room for become several selections, each name in one of them', async () => {
  const names = Array.from({ length: 4000 }, (_, at) => `a-machine-with-a-long-name-${at}`)
  const found = await target(['-'], { state: 'active' }, names.join('\n'))
  assert.ok(found.kind === 'selections' && found.selections.length > 1)
  assert.deepEqual(
    found.selections.flatMap((selection) => selection.names ?? []),
    names,
  )
  for (const selection of found.selections) {
    assert.equal(selection.state, 'active')
    assert.ok(JSON.stringify(selection).length < 60_000)
  }
})

test('nothing, an empty file and a tag that cannot be one are mistakes', async () => {
  await assert.rejects(target([]), /Which nodes\?/)
  await assert.rejects(target(['-'], {}, '# none\n'), /no names in standard input/)
  await assert.rejects(target(['gpu-*', '-'], {}, 'hpc-1\n'), /No name in standard input matches/)
  await assert.rejects(target(['gpu-1', '-'], {}, 'hpc-1\n'), /gpu-1 is given beside a list of names/)
  await assert.rejects(target([], { tag: ['a=b=c'] }), /a=b=c is not a tag/)
})
