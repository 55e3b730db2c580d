// What a command takes to start, beside a bare Node: `./muster` of a checkout and the executable, in turns in one run; and how large the
// executable and an agent are that run from it.
//
//     npm run bench cli -- --rounds 30

import { spawn, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { linkExecutable } from '../scripts/build.ts'
import { nodeBinary } from '../scripts/node-binary.ts'
import { root } from '../scripts/repository.ts'
import { runCommand } from '../scripts/run-command.ts'
import { residentBytes } from '../test/process/resident-memory.ts'
import { startPlane } from './plane-process.ts'
import { benchOptions, wrongOption } from './options.ts'

// npm takes `--rounds N` without a `--` before it for its own, and passes on the number alone.
const { values, positionals } = benchOptions({ options: { rounds: { type: 'string' } }, allowPositionals: true })
const rounds = Number(values.rounds ?? positionals[0] ?? 30)
if (!Number.isInteger(rounds) || rounds < 5) wrongOption('--rounds takes a number from 5 on')

const aim = 2.2
const settleMs = 3000

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'muster-bench-cli-'))
const data = path.join(folder, 'data')
const plane = await startPlane({ kind: 'sqlite' }, data)
try {
  const executable = path.join(folder, 'muster')
  const architecture = process.arch === 'arm64' ? 'arm64' : 'x64'
  await linkExecutable(architecture, executable)
  const parts = await runCommand(process.execPath, ['scripts/write-parts.ts'], root)
  if (parts.code !== 0) throw new Error(parts.output)
  for (let node = 1; node <= 25; node++) await plane.call('POST', '/v1/tokens', { node: `gpu-${node}` })

  const node = { name: 'bare Node', command: [process.execPath, '-e', '0'] }
  const commands = [['version'], ['--help'], ['node', 'list', '--data', data]]
  const programs = [
    node,
    ...commands.map((args) => ({ name: `./muster ${shown(args)}`, command: [path.join(root, 'muster'), ...args] })),
    ...commands.map((args) => ({ name: `executable: muster ${shown(args)}`, command: [executable, ...args] })),
  ].map((program) => ({ ...program, samples: [] as Sample[] }))
  for (let round = 0; round <= rounds; round++) {
    for (const { command, samples } of programs) {
      const sample = once(command)
      // The first of each fills the caches of the disk.
      if (round > 0) samples.push(sample)
    }
  }
  const bare = programs[0]?.samples ?? []
  console.log(`median and CPU of ${rounds} starts, and their ratio to a bare Node's (aim ${aim})\n`)
  for (const { name, samples } of programs) {
    const [ms, cpu] = [median(samples.map((one) => one.ms)), mean(samples.map((one) => one.cpuMs))]
    const ratios = [ms / median(bare.map((one) => one.ms)), cpu / mean(bare.map((one) => one.cpuMs))]
    const figures = [`${ms.toFixed(1)} ms`, `CPU ${cpu.toFixed(1)} ms`, ...ratios.map((ratio) => ratio.toFixed(2))]
    console.log(`${name.padEnd(34)} ${figures.map((figure) => figure.padStart(13)).join('')}`)
  }
  const sizes = [fs.statSync(executable).size, fs.statSync((await nodeBinary(architecture)).file).size] as const
  console.log(`\nsize of the executable       ${megabytes(sizes[0])} MB; Node ${megabytes(sizes[1])} MB`)
  const memory = [
    await settledAgent(executable),
    await settled(process.execPath, ['-e', 'setInterval(() => {}, 1e6)']),
  ] as const
  console.log(`memory of a connected agent  ${megabytes(memory[0])} MB; idle Node ${megabytes(memory[1])} MB`)
} finally {
  await plane.stop()
  fs.rmSync(folder, { recursive: true, force: true })
}

type Sample = { readonly ms: number; readonly cpuMs: number }

function once([program = '', ...args]: readonly string[]): Sample {
  const [startedMs, before] = [performance.now(), childrenCpuMs()]
  const { status, stderr } = spawnSync(program, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
  if (status !== 0) throw new Error(`${program} ${args.join(' ')} ended with ${status}:\n${stderr.toString()}`)
  return { ms: performance.now() - startedMs, cpuMs: childrenCpuMs() - before }
}

/** Of all children that have ended. */
function childrenCpuMs(): number {
  const stat = fs.readFileSync('/proc/self/stat', 'utf8')
  const [user = 0, system = 0] = stat
    .slice(stat.lastIndexOf(') ') + 2)
    .split(' ')
    .slice(13, 15)
    .map(Number)
  return (user + system) * 10
}

async function settledAgent(executable: string): Promise<number> {
  const { join } = (await plane.call('POST', '/v1/tokens', { node: 'bench' })) as { join: string }
  const file = path.join(folder, 'join')
  fs.writeFileSync(file, join, { mode: 0o600 })
  return settled(executable, ['agent', 'run', '--state', path.join(folder, 'state'), '--join-file', file])
}

/** Resident bytes, once it has nothing to do any more. */
async function settled(program: string, args: readonly string[]): Promise<number> {
  const child = spawn(program, args, { cwd: folder, stdio: 'ignore' })
  await new Promise((resolve) => setTimeout(resolve, settleMs))
  const bytes = residentBytes(child.pid ?? 0)
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  await ended
  return bytes
}

function shown(args: readonly string[]): string {
  return args.filter((arg) => arg !== '--data' && arg !== data).join(' ')
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1)
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}
