// What an agent costs the machine it runs on, against a bare Node that opens one TLS connection to the same plane: time
// from start to an open channel, and memory once it is settled. The bundle, as machines run it; same machine, same run,
// the two in turns.
//
//     npm run bench agent -- --rounds 15

import { spawn, type ChildProcess } from 'node:child_process'
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { parseArgs } from 'node:util'
import { buildAgent } from '../scripts/build-agent.ts'
import { startPlane } from './plane-process.ts'

// npm takes `--rounds N` without a `--` before it for its own, and passes on the number alone.
const { values, positionals } = parseArgs({ options: { rounds: { type: 'string' } }, allowPositionals: true })
const rounds = Number(values.rounds ?? positionals[0] ?? 15)
if (!Number.isInteger(rounds) || rounds < 3) throw new Error('--rounds takes a number from 3 on')

const aimMs = 400
const aimMiB = 90
const settleMs = 3000

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'muster-bench-agent-'))
const plane = await startPlane()
try {
  const { file, bytes } = await buildAgent(null, path.join(folder, 'muster-agent.mjs'))
  const state = path.join(folder, 'state')
  const { join } = (await plane.call('POST', '/v1/tokens', { node: 'bench' })) as { join: string }
  fs.writeFileSync(path.join(folder, 'join'), join, { mode: 0o600 })
  fs.writeFileSync(path.join(folder, 'root.pem'), plane.rootPem)

  const agentArgs = [file, 'agent', 'run', '--state', state, '--join-file', path.join(folder, 'join')]
  const { port } = new URL(plane.nodeUrl)
  const handshake = `import * as tls from 'node:tls'; import * as fs from 'node:fs'
    const socket = tls.connect({ host: '127.0.0.1', servername: 'localhost', port: ${port}, ca: fs.readFileSync(process.argv[2]), minVersion: 'TLSv1.3' },
      () => console.log('channel open')); setInterval(() => {}, 1e6); socket.on('error', (error) => { throw error })`
  const bareFile = path.join(folder, 'bare.mjs')
  fs.writeFileSync(bareFile, handshake)
  const bareArgs = [bareFile, path.join(folder, 'root.pem')]

  await once(agentArgs, settleMs)
  const agent: Sample[] = []
  const bare: Sample[] = []
  for (let round = 0; round < rounds; round++) {
    agent.push(await once(agentArgs, round === 0 ? settleMs : 200))
    bare.push(await once(bareArgs, round === 0 ? settleMs : 200))
  }
  const settled = { agent: agent[0]?.mib ?? 0, bare: bare[0]?.mib ?? 0 }
  const [agentMs, bareMs] = [median(agent.map(({ ms }) => ms)), median(bare.map(({ ms }) => ms))]
  console.log(`bundle                    ${(bytes / 1024).toFixed(0)} KiB`)
  console.log(`start to channel          ${agentMs.toFixed(0)} ms in the median of ${rounds} (aim ${aimMs})`)
  console.log(`bare Node to handshake    ${bareMs.toFixed(0)} ms`)
  console.log(`ratio                     ${(agentMs / bareMs).toFixed(2)}`)
  console.log(
    `memory, settled           ${settled.agent.toFixed(0)} MiB (aim ${aimMiB}); bare Node ${settled.bare.toFixed(0)} MiB`,
  )
  console.log(`ratio                     ${(settled.agent / settled.bare).toFixed(2)}`)
} finally {
  await plane.stop()
  fs.rmSync(folder, { recursive: true, force: true })
}

type Sample = { readonly ms: number; readonly mib: number }

/** One process, until it says that it is connected; then it is looked at, and ended. */
async function once(args: readonly string[], lookAfterMs: number): Promise<Sample> {
  const startedMs = performance.now()
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], cwd: folder })
  await connected(child)
  const ms = performance.now() - startedMs
  await new Promise((resolve) => setTimeout(resolve, lookAfterMs))
  const mib = Number(/^VmRSS:\s+(\d+) kB/m.exec(fs.readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) / 1024
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  await ended
  return { ms, mib }
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

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}
