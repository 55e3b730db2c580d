// One identity from Muster, from step-ca and from Vault, each on the same two cores from the same client: a P-256 request, a
// certificate that is checked, on a new TLS 1.3 connection and on a kept one. They take turns in one run, so that whatever
// else the machine does befalls all of them.
//
// Muster runs twice: as it is by default, and with TLS on its main thread. Beside them a server on Node that only answers, and the
// smallest CA on Node, show what of an identity is Node's own.
//
// step-ca and Vault are built once (Go 1.26, a few minutes). CPU is of the server alone, user and system, all threads.
//
// Before it is measured each server has worked: `--warm-up` of each kind, in which code is compiled and memory is taken once, and
// whatever its start leaves to do. A CA runs for months.
//
//     npm run bench side-by-side
//     npm run bench side-by-side -- --identities 8000 --rounds 6 --warm-up 3000

import type { Scope } from '../../test/process/cleanup.ts'
import { benchRun } from '../bench-run.ts'
import { startLoadClient, type Order } from '../load-client.ts'
import { makeTokens, startPlane } from '../plane-process.ts'
import { cpuMs, untilIdle } from '../process-cost.ts'
import {
  nodeAlone,
  nothingMeasured,
  printSideBySide,
  smallestCa,
  type Measured,
  type Mode,
} from './print-side-by-side.ts'
import { startOnNode, startStepCa, startVault, type Rival } from './rivals.ts'
import { benchOptions, wrongOption } from '../options.ts'

const { values } = benchOptions({
  options: { identities: { type: 'string' }, rounds: { type: 'string' }, 'warm-up': { type: 'string' } },
})
const identities = Number(values.identities ?? 6000)
const rounds = Number(values.rounds ?? 4)
if (!Number.isInteger(identities) || identities < 1) wrongOption('--identities takes a number from 1 on')
const warmUp = Number(values['warm-up'] ?? 3000)
if (!Number.isInteger(warmUp) || warmUp < 1) wrongOption('--warm-up takes a number from 1 on')
if (!Number.isInteger(rounds) || rounds < 1) wrongOption('--rounds takes a number from 1 on')

const atOnce = 16
const modes: readonly Mode[] = ['handshake', 'new', 'kept']

type Contender = Rival & { readonly name: string; readonly secrets: readonly string[] }

await benchRun(async (t) => {
  const perRound = Math.ceil(identities / rounds)
  const total = 2 * (warmUp + perRound * rounds)
  const contenders = [
    await muster(t, 'Muster', total, []),
    await muster(t, 'one thread', total, ['--tls-threads', '0']),
    { name: 'step-ca', ...(await startStepCa(t)), secrets: [] },
    { name: 'Vault', ...(await startVault(t)), secrets: [] },
    { name: nodeAlone, ...(await startOnNode(t, 'node-alone')), secrets: [] },
    { name: smallestCa, ...(await startOnNode(t, 'smallest-ca')), secrets: [] },
  ]
  console.log(
    `side by side: ${identities} identities of each kind from each, ${atOnce} at a time, in ${rounds} rounds after a warm-up of ${warmUp}`,
  )
  const running = await Promise.all(contenders.map((contender) => prepare(t, contender, total)))
  for (const one of running) for (const mode of modes) await one.run(mode, warmUp)
  for (const { pid } of contenders) await untilIdle(() => cpuMs(pid))
  const results = new Map(running.map(({ name }) => [name, nothingMeasured()]))
  for (let round = 0; round < rounds; round++)
    for (const mode of modes)
      for (const { name, run } of running) results.get(name)![mode].push(await run(mode, perRound))
  printSideBySide(results)
})

async function muster(t: Scope, title: string, count: number, options: readonly string[]): Promise<Contender> {
  const plane = await startPlane({ kind: 'sqlite' }, null, options)
  t.after(() => plane.stop())
  const { host: address, hostname: name } = new URL(plane.nodeUrl)
  const secrets = await makeTokens(plane, count)
  return { name: title, pid: plane.pid, target: { server: 'muster', address, name, roots: plane.rootPem }, secrets }
}

async function prepare(t: Scope, { name, pid, target, secrets }: Contender, count: number) {
  const client = await startLoadClient(t)
  await client.ask({ do: 'connect', ...target })
  const names = Array.from({ length: count }, (_, at) => `machine-${at}.bench`)
  await client.ask({ do: 'machines', names, secrets })
  let next = 0
  const orderFor = (mode: Mode, of: number): Order => {
    if (mode === 'handshake') return { do: 'handshakes', count: of, at_once: atOnce }
    const from = next
    next += of
    return { do: 'enroll', from, to: next, at_once: atOnce, keep: mode === 'kept' }
  }
  const run = async (mode: Mode, of: number): Promise<Measured> => {
    const order = orderFor(mode, of)
    const before = cpuMs(pid)
    const clientBefore = cpuMs(client.pid)
    const { done, ms, failures } = await client.ask(order)
    const measured = { done, ms, cpuMs: cpuMs(pid) - before, clientCpuMs: cpuMs(client.pid) - clientBefore }
    if (done !== of) throw new Error(`${name}: ${of - done} of ${of} failed: ${failures?.[0]}`)
    if (order.do === 'enroll' && name !== nodeAlone) await client.check(order.from, order.to)
    return measured
  }
  return { name, run }
}
