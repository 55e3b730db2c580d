// What an agent costs the machine it runs on while it has no task: time and CPU from its start to an open channel, and memory. Beside
// it the same agent on a host that takes tasks, with a helper that is idle, the agent of the release before, and a bare Node that opens
// one TLS connection to the same plane: same machine, same run, all of them in turns.
//
//     npm run bench agent -- --rounds 15

import { spawn, type ChildProcess } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { build } from 'esbuild'
import { parseJoinString } from '../src/wire/core/join-string.ts'
import { previousReleases, sourcesOf } from '../test/compat/previous-release.ts'
import { peer } from '../test/peers/peer.ts'
import { cleanup, type Scope } from '../test/process/cleanup.ts'
import { residentBytes } from '../test/process/resident-memory.ts'
import { hostFolder, socketIn, startHelper } from '../test/process/task-host.ts'
import { tempFolder } from '../test/process/temp-folder.ts'
import { benchRun } from './bench-run.ts'
import { benchOptions, wrongOption } from './options.ts'
import { startPlane, type PlaneProcess } from './plane-process.ts'
import { ownCpuMs } from './process-cost.ts'

// npm takes `--rounds N` without a `--` before it for its own, and passes on the number alone.
const { values, positionals } = benchOptions({ options: { rounds: { type: 'string' } }, allowPositionals: true })
const rounds = Number(values.rounds ?? positionals[0] ?? 15)
if (!Number.isInteger(rounds) || rounds < 3) wrongOption('--rounds takes a number from 3 on')

const aimMs = 400
const aimMiB = 90
const settleMs = 3000
/** Each takes as long as that. */
const settledRounds = 3
const root = path.resolve(import.meta.dirname, '..')

type Contender = { readonly name: string; readonly bundleBytes: number; readonly args: readonly string[] }
/** `settledMiB` null: it was not waited for. */
type Sample = {
  readonly ms: number
  readonly cpuMs: number
  readonly openMiB: number
  readonly settledMiB: number | null
}

await benchRun(async (t) => {
  const plane = await startPlane()
  cleanup(t, () => plane.stop())
  const folder = tempFolder(t)
  const contenders = [
    await agentOf(plane, folder, 'this agent', root),
    await agentBesideHelper(t, plane, folder),
    ...(await agentsBefore(t, plane, folder)),
    bareNode(plane, folder),
  ]
  const samples = new Map<Contender, Sample[]>(contenders.map((one) => [one, []]))
  // The first start enrolls.
  for (const one of contenders) await once(one, folder, false)
  for (let round = 0; round < rounds; round++)
    for (const one of contenders) samples.get(one)?.push(await once(one, folder, round < settledRounds))
  print(samples)
})

/** As machines run it: one file. Both releases are bundled in the same way. */
async function agentOf(plane: PlaneProcess, folder: string, name: string, sources: string): Promise<Contender> {
  const place = name.replaceAll(' ', '-')
  const file = path.join(folder, `${place}.mjs`)
  await build({
    absWorkingDir: sources,
    entryPoints: ['bin/muster-agent.ts'],
    outfile: file,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    logLevel: 'warning',
    banner: {
      js: "import { createRequire as __createRequire } from 'node:module'\nconst require = __createRequire(import.meta.url)",
    },
  })
  const { join } = (await plane.call('POST', '/v1/tokens', { node: place })) as { join: string }
  const joinFile = path.join(folder, `${place}.join`)
  fs.writeFileSync(joinFile, join, { mode: 0o600 })
  const args = [file, 'agent', 'run', '--state', path.join(folder, place), '--join-file', joinFile]
  return { name, bundleBytes: fs.statSync(file).size, args }
}

/** The process of the helper is not measured: it starts before the first agent, and waits for tasks all the time. */
async function agentBesideHelper(t: Scope, plane: PlaneProcess, folder: string): Promise<Contender> {
  const agent = await agentOf(plane, folder, 'with a helper', root)
  const host = hostFolder(t)
  const { statement_keys: keys, join } = await plane.call('GET', '/v1/ca/bundle')
  fs.writeFileSync(path.join(host, 'statement-keys.pem'), (keys as string[]).join(''), { mode: 0o644 })
  const domain = parseJoinString(String(join))?.domain
  if (domain === undefined) throw new Error(`no join string: ${String(join)}`)
  const node = `[node]\ndomain = "${domain}"\nid = "with-a-helper"\n`
  const tasks = `[tasks]\nstatement_keys = "${host}/statement-keys.pem"\nallow = ["collect-diagnostics"]\n`
  fs.writeFileSync(path.join(host, 'agent.toml'), node + tasks, { mode: 0o644 })
  await startHelper(t, host)
  return { ...agent, args: [...agent.args, '--helper-socket', socketIn(host)] }
}

async function agentsBefore(t: Scope, plane: PlaneProcess, folder: string): Promise<readonly Contender[]> {
  const [before] = previousReleases()
  const history = peer('previous-release')
  if (before === undefined || 'missing' in history) {
    console.log(`no agent of the release before: ${'missing' in history ? history.missing : 'none is named'}`)
    return []
  }
  return [await agentOf(plane, folder, `agent ${before.version}`, sourcesOf(t, before))]
}

function bareNode({ nodeUrl, rootPem }: PlaneProcess, folder: string): Contender {
  const file = path.join(folder, 'bare.mjs')
  const rootFile = path.join(folder, 'root.pem')
  fs.writeFileSync(rootFile, rootPem)
  fs.writeFileSync(
    file,
    `import * as tls from 'node:tls'; import * as fs from 'node:fs'
    const socket = tls.connect({ host: '127.0.0.1', servername: 'localhost', port: ${new URL(nodeUrl).port}, ca: fs.readFileSync(process.argv[2]), minVersion: 'TLSv1.3' },
      () => console.log('channel open')); setInterval(() => {}, 1e6); socket.on('error', (error) => { throw error })`,
  )
  return { name: 'bare Node', bundleBytes: fs.statSync(file).size, args: [file, rootFile] }
}

/** One process, until it says that it is connected; then it is looked at, and ended. */
async function once({ args }: Contender, folder: string, settles: boolean): Promise<Sample> {
  const startedMs = performance.now()
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], cwd: folder })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  try {
    await connected(child)
    const [ms, cpuMs, openMiB] = [performance.now() - startedMs, ownCpuMs(child.pid ?? 0), residentMiB(child)]
    await new Promise((resolve) => setTimeout(resolve, settles ? settleMs : 200))
    return { ms, cpuMs, openMiB, settledMiB: settles ? residentMiB(child) : null }
  } finally {
    child.kill('SIGTERM')
    await ended
  }
}

function residentMiB({ pid }: ChildProcess): number {
  return residentBytes(pid ?? 0) / 1024 ** 2
}

function connected(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let text = ''
    const read = (chunk: Buffer): void => {
      text += chunk.toString()
      if (text.includes('channel open')) resolve()
    }
    child.stdout?.on('data', read)
    child.stderr?.on('data', read)
    child.once('exit', (code) => reject(new Error(`it ended with ${code} before it was connected:\n${text}`)))
    setTimeout(() => reject(new Error(`not connected in 30 s:\n${text}`)), 30_000).unref()
  })
}

function print(samples: ReadonlyMap<Contender, readonly Sample[]>): void {
  const figures = [...samples].map(([{ name, bundleBytes }, taken]) => ({
    name,
    bundleBytes,
    ms: median(taken.map(({ ms }) => ms)),
    cpuMs: median(taken.map(({ cpuMs }) => cpuMs)),
    openMiB: median(taken.map(({ openMiB }) => openMiB)),
    settledMiB: median(taken.flatMap(({ settledMiB }) => settledMiB ?? [])),
  }))
  const [ours, ...others] = figures
  if (ours === undefined) throw new Error('nothing was measured')
  console.log(`medians of ${rounds} starts each, in turns; settled: of ${settledRounds}, after ${settleMs / 1000} s`)
  for (const { name, bundleBytes, ms, cpuMs, openMiB, settledMiB } of figures)
    console.log(
      `${name.padEnd(14)} start to channel ${ms.toFixed(0)} ms, CPU ${cpuMs.toFixed(0)} ms, ` +
        `memory ${openMiB.toFixed(1)} MiB, settled ${settledMiB.toFixed(1)} MiB, file ${(bundleBytes / 1024).toFixed(0)} KiB`,
    )
  for (const other of others)
    console.log(
      `ratio          ${(ours.ms / other.ms).toFixed(2)} of the time, ${(ours.cpuMs / other.cpuMs).toFixed(2)} of the CPU, ` +
        `${(ours.openMiB / other.openMiB).toFixed(2)} and settled ${(ours.settledMiB / other.settledMiB).toFixed(2)} of the memory of ${other.name}`,
    )
  console.log(`aims           ${aimMs} ms, ${aimMiB} MiB settled`)
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0
}
