// A boot storm: every node with its own key, request and TLS connections, against a real plane in another process.
//
//     npm run bench storm -- --nodes 10000

import { fork } from 'node:child_process'
import * as path from 'node:path'
import { parseArgs } from 'node:util'
import { startPlane, type PlaneProcess } from '../plane-process.ts'
import type { Order, Report } from './generator.ts'

// npm takes `--nodes N` without a `--` before it for its own, and passes on the number alone.
const { values, positionals } = parseArgs({ options: { nodes: { type: 'string' } }, allowPositionals: true })
const nodes = Number(values.nodes ?? positionals[0] ?? 2000)
if (!Number.isInteger(nodes) || nodes < 20) throw new Error('--nodes takes a number from 20 on')

const warmUp = 300
const total = nodes + warmUp
const plane = await startPlane()
const generator = fork(path.join(import.meta.dirname, 'generator.ts'))

const ended = new Promise<never>((_, reject) => {
  generator.once('exit', (code) => reject(new Error(`the load generator ended with ${code}`)))
})
ended.catch(() => {})

const ask = (order: Order): Promise<Report> => {
  const answered = new Promise<Report>((resolve) => generator.once('message', (report) => resolve(report as Report)))
  generator.send(order)
  return Promise.race([answered, ended])
}

type Phase = Report & { readonly cpuPerNodeMs: number }

/** What the plane spends while the generator does one thing `nodes` times. */
const measured = async (order: Order): Promise<Phase> => {
  const before = plane.cpuMs()
  const report = await ask(order)
  return { ...report, cpuPerNodeMs: (plane.cpuMs() - before) / report.done }
}

try {
  console.log(`storm: ${nodes} nodes, one plane, generator in another process`)
  const secrets = await makeTokens(plane, total)
  await ask({ kind: 'prepare', nodeUrl: plane.nodeUrl, rootPem: plane.rootPem, secrets })
  // The first of each pay for compilation, which a plane does once and a storm does not repeat.
  await ask({ kind: 'handshakes', count: warmUp })
  await ask({ kind: 'enroll', from: 0, upTo: warmUp })

  const bare = await measured({ kind: 'handshakes', count: nodes })
  const enroll = await measured({ kind: 'enroll', from: warmUp, upTo: total })
  const bareAgain = await measured({ kind: 'handshakes', count: nodes })
  const confirm = await inSteps('confirm')
  const channel = await inSteps('channel')

  const phases: [string, Phase][] = [
    ['enrol', enroll],
    ['confirm', confirm],
    ['channel', channel],
  ]
  const failures = phases.reduce((sum, [, phase]) => sum + phase.failures.length, 0)
  const seconds = phases.reduce((sum, [, phase]) => sum + phase.ms, 0) / 1000
  const bareMs = (bare.cpuPerNodeMs + bareAgain.cpuPerNodeMs) / 2
  for (const [name, phase] of [['bare handshake', bare], ...phases, ['bare handshake', bareAgain]] as [
    string,
    Phase,
  ][]) {
    const rate = (phase.done / phase.ms) * 1000
    console.log(
      `${name.padEnd(16)} ${phase.cpuPerNodeMs.toFixed(3)} ms of plane CPU a node, ${rate.toFixed(0)} a second`,
    )
  }
  for (const [name, { failures: some }] of phases)
    if (some.length > 0) console.log(`${name} failures:`, some.slice(0, 5))
  console.log(`failures         ${failures}`)
  console.log(`whole storm      ${seconds.toFixed(1)} s, ${(nodes / seconds).toFixed(0)} nodes a second`)
  console.log(
    `open channel     ${((confirm.bytesEach + channel.bytesEach) / 1024).toFixed(1)} KiB of plane memory each (aim: at most 80)`,
  )
  console.log(
    `ratio            ${(enroll.cpuPerNodeMs / bareMs).toFixed(2)} enrolment CPU to a bare handshake (aim: at most 1.6)`,
  )
  if (failures > 0) process.exitCode = 1
} finally {
  generator.kill()
  await plane.stop()
}

async function makeTokens(target: PlaneProcess, count: number): Promise<string[]> {
  const secrets: string[] = Array.from({ length: count })
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < count) {
      const at = next++
      const made = await target.call('POST', '/v1/tokens', {
        node: `storm-${String(at).padStart(6, '0')}`,
        expires_ms: 86_400_000,
      })
      secrets[at] = made['secret'] as string
    }
  }
  await Promise.all(Array.from({ length: 16 }, worker))
  return secrets
}

/** In quarters, reading settled memory after each: its slope over their number is what one connection costs. */
async function inSteps(kind: 'confirm' | 'channel'): Promise<Phase & { bytesEach: number }> {
  const points: [number, number][] = [[0, await plane.settledBytes()]]
  let sum: Phase = { kind: 'report', done: 0, ms: 0, failures: [], cpuPerNodeMs: 0 }
  const steps = 4
  for (let step = 0; step < steps; step++) {
    const at = (quarter: number) => Math.floor((total * quarter) / steps)
    const phase = await measured({ kind, from: at(step), upTo: at(step + 1) })
    const done = sum.done + phase.done
    const cpu = sum.cpuPerNodeMs * sum.done + phase.cpuPerNodeMs * phase.done
    sum = {
      ...phase,
      done,
      ms: sum.ms + phase.ms,
      failures: [...sum.failures, ...phase.failures],
      cpuPerNodeMs: cpu / done,
    }
    points.push([done, await plane.settledBytes()])
  }
  return { ...sum, bytesEach: slope(points) }
}

function slope(points: readonly [number, number][]): number {
  const mean = (of: (point: readonly [number, number]) => number) =>
    points.reduce((sum, p) => sum + of(p), 0) / points.length
  const x = mean((p) => p[0])
  const y = mean((p) => p[1])
  const over = points.reduce((sum, p) => sum + (p[0] - x) * (p[1] - y), 0)
  return over / points.reduce((sum, p) => sum + (p[0] - x) ** 2, 0)
}
