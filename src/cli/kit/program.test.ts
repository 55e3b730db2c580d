import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testCli } from '../../../test/fakes/test-cli.ts'
import { buildProgram } from './program.ts'

/** The nouns that are loaded for a command line. */
const loadedFor = async (...words: string[]): Promise<readonly string[]> => {
  const loaded: string[] = []
  const { cli } = testCli({})
  const nouns = ['node', 'token', 'version'].map((name) => ({
    name,
    summary: `about ${name}`,
    load: async () => {
      loaded.push(name)
      return () => {}
    },
  }))
  await buildProgram({ ...cli, nouns }, words)
  return loaded
}

test('only the noun that is called is loaded, wherever the options stand', async () => {
  assert.deepEqual(await loadedFor('token', 'list'), ['token'])
  assert.deepEqual(await loadedFor('-o', 'json', '--data', 'node', 'token', 'create', '--node', 'node'), ['token'])
  assert.deepEqual(await loadedFor('--output=json', 'version'), ['version'])
})

test('without a noun, or with a mistyped one, none is loaded, and all are listed', async () => {
  for (const words of [[], ['--help'], ['nodes', 'token']]) assert.deepEqual(await loadedFor(...words), [])
  const { cli } = testCli({})
  const { commands } = await buildProgram(cli, [])
  assert.deepEqual(
    commands.map((command) => command.name()),
    cli.nouns.map(({ name }) => name),
  )
})
