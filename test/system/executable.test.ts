// The executable, as a host runs it that has no Node: a plane, an agent and commands.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { availableParallelism } from 'node:os'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { buildExecutable, linkExecutable } from '../../scripts/build.ts'
import type { Architecture } from '../../scripts/node-binary.ts'
import { eventually } from '../process/eventually.ts'
import { newSecret, targetByAddress } from '../process/plane-records.ts'
import { rawNode } from '../process/raw-node.ts'
import { runMuster } from '../process/run-muster.ts'
import { shared } from '../process/shared-plane.ts'
import { startAgent } from '../process/start-agent.ts'
import { startPlane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'

const long = process.env['MUSTER_LONG'] === '1'
const here: Architecture = process.arch === 'arm64' ? 'arm64' : 'x64'

const executable = shared(async (scope) => {
  const file = path.join(tempFolder(scope), 'muster')
  await linkExecutable(here, file)
  return { file }
})

/** Nothing is on the PATH but what every host has. */
const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', NODE_COMPILE_CACHE: undefined }

test('a plane, an agent and commands run from the one file, and the agent loads no SQLite', async (t) => {
  const { file: command } = executable()
  const cwd = tempFolder(t)
  // Two threads: the file of a thread is in the executable, too.
  const plane = await startPlane(t, { command, cwd, env, args: ['--tls-threads', '2'] })
  const loaded = path.join(cwd, 'loaded')
  const agent = startAgent(t, {
    command,
    cwd,
    env: { ...env, ...recording(cwd, loaded) },
    join: await plane.token('--node', 'gpu-1'),
  })
  await eventually('the node to be active with a channel', async () => {
    const { body } = await plane.api('GET', '/v1/nodes/gpu-1')
    return body.membership === 'active' && body.channel_open === true
  })
  const listed = await runMuster(['node', 'list', '--data', plane.data], { command, cwd, env })
  assert.match(listed.stdout, /gpu-1 +active/)
  const bundle = ['node', 'bundle', 'gpu-2', '--format', 'cloud-init', '--this-machine', '--data', plane.data]
  assert.match((await runMuster(bundle, { command, cwd, env })).stdout, /ExecStart=\/usr\/bin\/muster agent run/)
  assert.equal(takesSignal(agent.pid, 10), false, 'SIGUSR1 would open a debugger')
  await agent.stop()
  const modules = fs.readFileSync(loaded, 'utf8')
  assert.match(modules, /^NativeModule tls$/m)
  assert.doesNotMatch(modules, /sqlite/i)
})

test('the thread that checks proofs is in the file as well', { skip: availableParallelism() < 2 }, async (t) => {
  const { file: command } = executable()
  // Of two processors it gets the one that no thread for TLS has.
  const plane = await startPlane(t, { command, cwd: tempFolder(t), env, args: ['--tls-threads', '0'] })
  const node = rawNode(await targetByAddress(plane))
  assert.equal((await node.enrollByToken(await newSecret(plane, 'gpu-1'))).status, 200)
  const tasks = `/proc/${plane.pid}/task`
  const threads = fs.readdirSync(tasks).map((id) => fs.readFileSync(path.join(tasks, id, 'comm'), 'utf8').trim())
  assert.ok(threads.includes('signatures'), threads.join())
  assert.doesNotMatch(plane.stdout() + plane.stderr(), /checked on the main thread/)
})

const takesSignal = (pid: number, signal: number): boolean => {
  const caught = /^SigCgt:\s*(\w+)$/m.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '0'
  return (BigInt(`0x${caught}`) & (1n << BigInt(signal - 1))) !== 0n
}

/** The modules of Node that a process has loaded when it ends. */
const recording = (folder: string, file: string): { NODE_OPTIONS: string } => {
  const hook = path.join(folder, 'record.cjs')
  const text = `require('node:fs').writeFileSync(${JSON.stringify(file)}, process.moduleLoadList.join('\\n'))`
  fs.writeFileSync(hook, `process.once('exit', () => ${text})`)
  return { NODE_OPTIONS: `--require=${hook}` }
}

test('it says its version, and what is wrong with a command, as it does from the sources', async (t) => {
  const { file: command } = executable()
  const cwd = tempFolder(t)
  const [built, sources] = [{ command, cwd, env }, { cwd }]
  for (const args of [
    ['version'],
    ['--help'],
    ['node', '--help'],
    ['node', 'list'],
    ['nodes'],
    ['agent', 'run', '--nope'],
  ]) {
    assert.deepEqual(await runMuster(args, built), await runMuster(args, sources), args.join(' '))
  }
})

test('it names itself in what a reader may paste, and never another file of its name', async (t) => {
  const { file: command } = executable()
  const cwd = tempFolder(t)
  fs.writeFileSync(path.join(cwd, 'muster'), '#!/bin/sh\n', { mode: 0o755 })
  const elsewhere = await runMuster(['nodes'], { command, cwd, env })
  assert.match(elsewhere.stderr, /\bmuster --help/)
  assert.doesNotMatch(elsewhere.stderr, /\.\/muster/)
  const beside = await runMuster(['nodes'], { command, cwd: path.dirname(command), env })
  assert.match(beside.stderr, /\.\/muster --help/)
})

test('it carries the licenses of all that it holds', async (t) => {
  const { file: command } = executable()
  const { code, stdout } = await runMuster(['version', '--licenses'], { command, cwd: tempFolder(t), env })
  assert.equal(code, 0)
  for (const name of ['Muster', 'Node.js', 'fastify', 'pg-cloudflare'])
    assert.match(stdout, new RegExp(`^${name}\\b`, 'm'))
})

test('the same sources make the same executable, compressed form and SBOM', { skip: !long }, async (t: TestContext) => {
  const [one, two] = [await buildExecutable(here, tempFolder(t)), await buildExecutable(here, tempFolder(t))]
  assert.deepEqual(
    [one.sha256, one.compressed.sha256, one.sbom.sha256],
    [two.sha256, two.compressed.sha256, two.sbom.sha256],
  )
})
