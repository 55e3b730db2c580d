// How much slower an honest node is served while strangers attack every listener in every way at once: quiet phases and
// attacked ones in turns, the p99 of one node's calls in each kind, and their ratio. Ends with 1 where that is above 3.
//
//     npm run bench hostile -- --phases 4 --seconds 5 --each 4

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import * as path from 'node:path'
import { parseArgs } from 'node:util'
import { doorsOf, metricOf, type Door } from '../test/process/attackers.ts'
import { recoverableNode } from '../test/process/raw-recovery.ts'
import { residentBytes } from '../test/process/resident-memory.ts'
import { startPlane } from '../test/process/start-plane.ts'
import { benchRun } from './bench-run.ts'

const { values } = parseArgs({
  options: { phases: { type: 'string' }, seconds: { type: 'string' }, each: { type: 'string' } },
  allowPositionals: true,
})
const number = (text: string | undefined, otherwise: number): number => {
  const value = Number(text ?? otherwise)
  if (!Number.isInteger(value) || value < 1 || value > 1000) throw new Error('numbers from 1 to 1000 are taken')
  return value
}
const phases = number(values.phases, 4)
const seconds = number(values.seconds, 5)
const each = number(values.each, 4)
const aim = 3
const megabyte = 1024 * 1024

const startAttack = async (doors: readonly Door[]): Promise<() => Promise<void>> => {
  const file = path.join(import.meta.dirname, 'hostile-attackers.ts')
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', file], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  child.stdin.write(`${JSON.stringify({ doors, each })}\n`)
  await once(child.stdout, 'data')
  return async () => {
    const ended = once(child, 'exit')
    child.stdin.end()
    await ended
  }
}

const p99 = (samples: readonly number[]): number =>
  samples.toSorted((a, b) => a - b)[Math.floor(samples.length * 0.99)] ?? Number.NaN

await benchRun(async (t) => {
  const plane = await startPlane(t, {
    args: ['--operator-tls', '--log-level', 'warn'],
    env: { NODE_OPTIONS: '--max-old-space-size=512' },
  })
  const machine = await recoverableNode(plane, 'gpu-001')
  const { roots } = await plane.target()
  const doors = doorsOf(plane, roots, machine.target.roots, '/crl/00aa.crl')
  const measure = async (samples: number[]): Promise<void> => {
    const until = performance.now() + seconds * 1000
    while (performance.now() < until) {
      const beganMs = performance.now()
      const { status } = await machine.node.confirm()
      if (status !== 200) throw new Error(`the honest node was answered ${status}`)
      samples.push(performance.now() - beganMs)
    }
  }
  await measure([])
  const quiet: number[] = []
  const attacked: number[] = []
  const before = residentBytes(plane.pid)
  let most = before
  for (let phase = 0; phase < phases; phase++) {
    await measure(quiet)
    const stop = await startAttack(doors)
    await measure(attacked)
    most = Math.max(most, residentBytes(plane.pid))
    await stop()
  }
  const metrics = (await plane.api('GET', '/metrics')).body
  const ratio = p99(attacked) / p99(quiet)
  console.log(`hostile: ${doors.length} listeners, 6 kinds of attack, ${each} connections of each at each listener`)
  console.log(`  quiet     ${quiet.length} calls, p99 ${p99(quiet).toFixed(1)} ms`)
  console.log(`  attacked  ${attacked.length} calls, p99 ${p99(attacked).toFixed(1)} ms`)
  console.log(`  ratio     ${ratio.toFixed(2)} (aim: at most ${aim})`)
  console.log(`  memory    ${Math.round(before / megabyte)} MiB before, ${Math.round(most / megabyte)} MiB at most`)
  console.log(`  cut off   ${metricOf(metrics, 'muster_connections_cut_total')} connections`)
  console.log(`  log       ${plane.stderr().split('\n').length - 1} lines`)
  if (!(ratio <= aim)) process.exitCode = 1
})
