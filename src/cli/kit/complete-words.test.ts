import assert from 'node:assert/strict'
import { test } from 'node:test'
import { candidates, placeOf } from './complete-words.ts'
import { testCli, wholeProgram } from '../../../test/fakes/test-cli.ts'

const { cli } = testCli({})
const program = await wholeProgram(cli)

const next = (line: string): readonly string[] | string => {
  const words = line.split(' ')
  const found = candidates(placeOf(program, words.slice(0, -1)), words.at(-1) ?? '')
  return typeof found === 'string' ? found : found.map(([value]) => value)
}

test('nouns, verbs, options and their choices are completed', () => {
  assert.ok(next('').includes('node'))
  assert.ok(!next('').includes('demo-agents'), 'what is hidden stays hidden')
  assert.ok(next('node ').includes('quarantine'))
  assert.ok(next('node list --').includes('--state'))
  assert.ok(next('node list --').includes('--output'), 'global options too')
  assert.deepEqual(next('node list -o '), ['table', 'wide', 'json', 'yaml', 'name', 'csv'])
  assert.deepEqual(next('key create alice --role '), ['viewer', 'operator', 'platform-admin'])
  assert.deepEqual(next('completion '), ['bash', 'zsh', 'fish'])
  for (const option of ['--columns', '--sort']) assert.ok(next(`node list ${option} `).includes('connected'))
})

test('names that only the plane knows are asked of it', () => {
  assert.equal(next('node show '), 'nodes')
  assert.equal(next('--data ./x node revoke gpu'), 'nodes')
  assert.equal(next('token create --node '), 'nodes')
  assert.equal(next('token create --profile '), 'profiles')
  assert.equal(next('profile set '), 'profiles')
  assert.equal(next('token revoke '), 'tokens')
  assert.equal(next('node revoke gpu-001 gpu'), 'nodes')
  assert.equal(next('node drain --vcluster '), 'vclusters')
  assert.equal(next('node move gpu-001 --to '), 'vclusters')
})

test('where a file is meant, or nothing more fits, the shell is left to itself', () => {
  assert.deepEqual(next('ca import '), [])
  assert.deepEqual([next('node drain --from '), next('profile create x --from ')], [[], 'profiles'])
  assert.deepEqual(next('agent run --state '), [])
  assert.deepEqual(next('node show gpu-001 '), [])
})

test('options typed before are remembered, so that names come from the right plane', () => {
  const place = placeOf(program, ['--data', './second', 'node', 'show'])
  assert.deepEqual(place.given, { data: './second' })
})
