// The agent as one file: what is in it, that it is made the same each time, and that it runs from an empty folder.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { buildAgent, dependencyList } from '../../scripts/build-agent.ts'
import { startChild } from '../process/child.ts'
import { eventually } from '../process/eventually.ts'
import { shared, sharedPlane } from '../process/shared-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'

const run = promisify(execFile)
const plane = sharedPlane()
const bundle = shared(async (scope) => {
  const file = path.join(tempFolder(scope), 'muster-agent.mjs')
  await buildAgent(null, file)
  return { file }
})

test('the packages in the bundle are those of the checked-in list, so a new one is a visible line', async (t) => {
  const built = await buildAgent(null, path.join(tempFolder(t), 'agent.mjs'))
  assert.equal(
    fs.readFileSync(dependencyList, 'utf8'),
    built.dependencies.join('\n') + '\n',
    'run: npm run build:agent',
  )
  const text = fs.readFileSync(built.file, 'utf8')
  for (const name of ['Muster', ...built.dependencies])
    assert.ok(text.includes(`${'='.repeat(80)}\n${name}`), `the license of ${name} travels with it`)
})

test('the same sources make the same bytes', async (t) => {
  const folder = tempFolder(t)
  const [one, two] = [
    await buildAgent(null, path.join(folder, 'one.mjs')),
    await buildAgent(null, path.join(folder, 'two.mjs')),
  ]
  assert.equal(one.sha256, two.sha256)
})

test('a Node that is too old says so in one sentence, and resolves nothing before that it may not have', async () => {
  const { file } = bundle()
  const older = `data:text/javascript,Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '22.1.0' } })`
  await assert.rejects(run(process.execPath, ['--import', older, file, '--version']), (error: Ended) => {
    assert.deepEqual([error.code, error.stdout], [exitCodes.misconfigured, ''])
    assert.match(error.stderr, /^muster: this needs Node 24 or newer, and runs on .*\n$/)
    return true
  })
  // What a module imports is resolved before its first line is run: `hash` of node:crypto is not in Node 18, which Debian 12 has.
  const imports = fs.readFileSync(file, 'utf8').match(/^(import|export) .*$/gm)
  assert.deepEqual(imports, ["import { createRequire as __createRequire } from 'node:module'"])
})

type Ended = { readonly code: number; readonly stdout: string; readonly stderr: string }

test('the bundle enrolls and opens its channel from a folder that holds nothing else', async (t) => {
  const { token, api } = plane()
  const folder = tempFolder(t)
  fs.writeFileSync(path.join(folder, 'join'), await token('--node', 'gpu-bundle'), { mode: 0o600 })
  const { file } = bundle()
  const args = [file, 'agent', 'run', '--state', path.join(folder, 'state'), '--join-file', path.join(folder, 'join')]
  startChild(t, process.execPath, args, { cwd: folder })
  await eventually('the node to be active with a channel', async () => {
    const { body } = await api('GET', '/v1/nodes/gpu-bundle')
    return body.membership === 'active' && body.channel_open === true ? true : null
  })
  await eventually('its status to say so', () =>
    run(process.execPath, [file, 'agent', 'status', '--state', path.join(folder, 'state')]).then(
      ({ stdout }) => /gpu-bundle/.test(stdout) || null,
      () => null,
    ),
  )
})

test('a bundle with a pinned root takes no join string of another root', async (t) => {
  const folder = tempFolder(t)
  const pinned = path.join(folder, 'pinned.mjs')
  await buildAgent('0'.repeat(64), pinned)
  fs.writeFileSync(path.join(folder, 'join'), await plane().token('--node', 'gpu-pinned'), { mode: 0o600 })
  const args = [pinned, 'agent', 'run', '--state', path.join(folder, 'state'), '--join-file', path.join(folder, 'join')]
  const failed = await run(process.execPath, args, { timeout: 30_000 }).then(
    () => null,
    (error: { code: number; stderr: string }) => error,
  )
  assert.ok(failed !== null, 'it ran')
  assert.match(failed.stderr, /for another root/)
  const { body } = await plane().api('GET', '/v1/nodes/gpu-pinned')
  assert.equal(body.membership, 'registered', 'nothing was sent')
})

test('a fingerprint that is none is not baked in', async (t) => {
  await assert.rejects(buildAgent('abc', path.join(tempFolder(t), 'x.mjs')), /64 hex digits/)
})
