// What the path of one enrollment costs inside the plane, against the two signatures it cannot do without: verify the
// request, decide, sign, and a durable, journaled commit, against verify + sign alone. Same process, same run, same keys.
//
//     npm run bench sign -- --nodes 4000

import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { makeCsr, parseCsr } from '#pki/csr.ts'
import { generateKey } from '#pki/keys.ts'
import { openEnrollingPlane } from './enrolling-plane.ts'
import { inParallel } from './in-parallel.ts'
import { benchOptions, wrongOption } from './options.ts'

// npm takes `--nodes N` without a `--` before it for its own, and passes on the number alone.
const { values, positionals } = benchOptions({ options: { nodes: { type: 'string' } }, allowPositionals: true })
const nodes = Number(values.nodes ?? positionals[0] ?? 4000)
if (!Number.isInteger(nodes) || nodes < 100) wrongOption('--nodes takes a number from 100 on')
const rounds = 5
const atOnce = 128

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'muster-sign-'))
const plane = await openEnrollingPlane(folder)
const signer = generateKey('p256')
const tbs = Buffer.alloc(420, 7)

type Machine = { readonly secret: string; readonly csr: string }

const prepare = async (from: number, count: number): Promise<Machine[]> => {
  const machines: Machine[] = []
  await inParallel(atOnce, count, async (at) => {
    machines.push({ secret: await plane.token(`sign-${from + at}`), csr: makeCsr(generateKey('p256'), 'bench') })
  })
  return machines
}

const cpuPerNode = async (count: number, run: () => Promise<void>): Promise<number> => {
  const before = process.cpuUsage()
  await run()
  const used = process.cpuUsage(before)
  return (used.user + used.system) / count
}

const enrollAll = (machines: readonly Machine[]) =>
  inParallel(atOnce, machines.length, (at) => plane.enroll(machines[at]!.secret, machines[at]!.csr))

const verifyAndSignAll = async (machines: readonly Machine[]): Promise<void> => {
  for (const { csr } of machines) {
    if (parseCsr(csr).kind === 'malformed') throw new Error('a request of ours was refused')
    signer.sign(tbs)
  }
}

try {
  const each = Math.floor(nodes / rounds)
  const ratios: number[] = []
  await enrollAll(await prepare(0, 300))
  for (let round = 1; round <= rounds; round++) {
    const machines = await prepare(round * 1_000_000, each)
    const bare = await cpuPerNode(each, () => verifyAndSignAll(machines))
    const whole = await cpuPerNode(each, () => enrollAll(machines))
    ratios.push(whole / bare)
    console.log(
      `round ${round}: whole path ${whole.toFixed(0)} µs, verify + sign ${bare.toFixed(0)} µs of CPU, ratio ${(whole / bare).toFixed(2)}`,
    )
  }
  const median = ratios.toSorted((a, b) => a - b)[Math.floor(rounds / 2)]!
  console.log(`ratio ${median.toFixed(2)} in the median of ${rounds} rounds of ${each} (aim: at most 2.5)`)
} finally {
  await plane.store.close()
  fs.rmSync(folder, { recursive: true, force: true })
}
