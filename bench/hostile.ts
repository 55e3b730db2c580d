// How much slower an honest node is served while strangers attack every listener in every way at once: the p99 of one
// node's calls with and without them, and their ratio. Ends with 1 where that is above 3.
//
//     npm run bench hostile -- --phases 4 --seconds 5 --each 4

import { doorsOf, metricOf } from '../test/process/attackers.ts'
import { recoverableNode } from '../test/process/raw-recovery.ts'
import { startPlane } from '../test/process/start-plane.ts'
import { callsUnderAttack, p99 } from '../test/process/under-attack.ts'
import { benchRun } from './bench-run.ts'
import { benchOptions } from './options.ts'

const { values } = benchOptions({
  options: { phases: { type: 'string' }, seconds: { type: 'string' }, each: { type: 'string' } },
  allowPositionals: true,
})
const number = (text: string | undefined, otherwise: number): number => {
  const value = Number(text ?? otherwise)
  if (!Number.isInteger(value) || value < 1 || value > 1000) throw new Error('numbers from 1 to 1000 are taken')
  return value
}
const phases = number(values.phases, 4)
const secondsEach = number(values.seconds, 5)
const each = number(values.each, 4)
const aim = 3
const megabyte = 1024 * 1024

await benchRun(async (t) => {
  const plane = await startPlane(t, {
    args: ['--operator-tls', '--log-level', 'warn'],
    env: { NODE_OPTIONS: '--max-old-space-size=512' },
  })
  const machine = await recoverableNode(plane, 'gpu-001')
  const { roots } = await plane.target()
  const doors = doorsOf(plane, roots, machine.target.roots, '/crl/00aa.crl')
  const call = async (): Promise<void> => {
    const { status } = await machine.node.confirm()
    if (status !== 200) throw new Error(`the honest node was answered ${status}`)
  }
  const measured = await callsUnderAttack(t, { doors, pid: plane.pid, call, phases, secondsEach, each })
  const { quiet, attacked, bytesBefore, mostBytes } = measured
  const metrics = (await plane.api('GET', '/metrics')).body
  const ratio = p99(attacked) / p99(quiet)
  console.log(`hostile: ${doors.length} listeners, 6 kinds of attack, ${each} connections of each at each listener`)
  console.log(`  quiet     ${quiet.length} calls, p99 ${p99(quiet).toFixed(1)} ms`)
  console.log(`  attacked  ${attacked.length} calls, p99 ${p99(attacked).toFixed(1)} ms`)
  console.log(`  ratio     ${ratio.toFixed(2)} (aim: at most ${aim})`)
  console.log(
    `  memory    ${Math.round(bytesBefore / megabyte)} MiB before, ${Math.round(mostBytes / megabyte)} MiB at most`,
  )
  console.log(`  cut off   ${metricOf(metrics, 'muster_connections_cut_total')} connections`)
  console.log(`  log       ${plane.stderr().split('\n').length - 1} lines`)
  if (!(ratio <= aim)) process.exitCode = 1
})
