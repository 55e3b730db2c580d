// What grows with the fleet: the same few calls on a plane with 1,000 nodes, with 10,000 and so on, then with a long journal
// and many denials, each on a data folder that the plane's own code has filled. Every size is measured in one run, and printed
// as a ratio to the first.
//
//     npm run bench growth
//     npm run bench growth -- --nodes 1000,10000,100000 --entries 10000000
//     npm run bench growth -- --nodes 1000 --entries 0 --channels 1000,5000,15000   (each is a file descriptor)
//     npm run bench growth -- --nodes 1000 --entries 0 --channels 1000,5000 --tls-threads 0

import { spawn } from 'node:child_process'
import * as path from 'node:path'
import { cleanup, inScope, type Scope } from '../../test/process/cleanup.ts'
import { tempFolder } from '../../test/process/temp-folder.ts'
import { benchRun } from '../bench-run.ts'
import { startLoadClient } from '../load-client.ts'
import { startPlane, type PlaneProcess } from '../plane-process.ts'
import { untilIdle } from '../process-cost.ts'
import { benchOptions, wrongOption } from '../options.ts'

const { values } = benchOptions({
  options: {
    nodes: { type: 'string', default: '1000,10000' },
    denials: { type: 'string', default: '1000' },
    entries: { type: 'string', default: '1000000' },
    channels: { type: 'string', default: '' },
    'tls-threads': { type: 'string' },
  },
})
const numbers = (text: string): number[] => (text === '' ? [] : text.split(',').map(Number))
const sizes = numbers(values.nodes)
const channels = numbers(values.channels)
const planeOptions = values['tls-threads'] === undefined ? [] : ['--tls-threads', values['tls-threads']]
const [denials, entries] = [Number(values.denials), Number(values.entries)]
if (![...sizes, ...channels, denials, entries].every((one) => Number.isInteger(one) && one >= 0))
  wrongOption('--nodes, --channels, --denials and --entries take whole numbers')
const counts = channels.toSorted((one, other) => one - other)
/** The memory of fewer channels is lost in that of the plane. */
const leastApart = 1000
if (counts.length === 1 || counts.some((count, at) => at > 0 && count - counts[at - 1]! < leastApart))
  wrongOption(`--channels takes two numbers or more, ${leastApart} apart: each is compared with the one before it`)

const atOnce = 16
const each = 600
const warmUp = 300
const revoked = 100
const lists = 50

/** Milliseconds of the plane's CPU a call, but for `start` (wall clock) and `memory` (MiB). */
type Costs = Readonly<
  Record<'start' | 'startCpu' | 'memory' | 'enroll' | 'renew' | 'revoke' | 'list' | 'filtered', number>
>

const labels: Readonly<Record<keyof Costs, string>> = {
  start: 'start, ms',
  startCpu: 'start, ms of CPU',
  memory: 'memory, MiB',
  enroll: 'enrollment, ms of CPU',
  renew: 'renewal, ms of CPU',
  revoke: 'revocation, ms of CPU',
  list: 'a page of node list, ms of CPU',
  filtered: 'node list by vCluster, ms of CPU',
}

const growth = async (t: Scope): Promise<void> => {
  const folder = tempFolder(t)
  const results: [string, Costs][] = []
  const measured = async (name: string): Promise<void> => {
    results.push([name, await inScope((scope) => measure(scope, folder, results.length))])
    console.log(`measured: ${name}`)
  }
  // The second start: the first makes the domain.
  await inScope(async (scope) => void (await planeOn(scope, folder)))
  await measured('empty')
  for (const size of sizes) {
    await fill(folder, size, 0, 0)
    await measured(`${size.toLocaleString('en')} nodes`)
  }
  if (entries > 0) {
    await fill(folder, sizes.at(-1) ?? 0, denials, entries)
    await measured(`and ${denials.toLocaleString('en')} denials, ${entries.toLocaleString('en')} entries`)
  }
  print(results)
  if (channels.length > 0) await openMany(t, folder)
}

const planeOn = async (scope: Scope, folder: string): Promise<PlaneProcess> => {
  const plane = await startPlane({ kind: 'sqlite' }, folder, planeOptions)
  cleanup(scope, () => plane.stop())
  return plane
}

const measure = async (scope: Scope, folder: string, run: number): Promise<Costs> => {
  const plane = await planeOn(scope, folder)
  const memory = (await plane.settledBytes()) / 2 ** 20
  await untilIdle(plane.cpuMs)
  const { client, names } = await machines(scope, plane, `run${run}`, warmUp + each)
  const cost = async (calls: number, work: () => Promise<unknown>): Promise<number> => {
    const before = plane.cpuMs()
    await work()
    return (plane.cpuMs() - before) / calls
  }
  const asked = async (order: 'enroll' | 'renew', from: number, to: number): Promise<void> => {
    const { done, failures } =
      order === 'enroll'
        ? await client.ask({ do: order, from, to, at_once: atOnce, keep: false })
        : await client.ask({ do: order, from, to, at_once: atOnce })
    if (done !== to - from) throw new Error(`${order}: ${failures?.[0]}`)
  }
  const list = async (query: string): Promise<void> => {
    for (let at = 0; at < lists; at++) await plane.call('GET', `/v1/nodes?limit=100${query}`)
  }
  await asked('enroll', 0, warmUp)
  const enroll = await cost(each, () => asked('enroll', warmUp, warmUp + each))
  await client.check(0, warmUp + each)
  await asked('renew', 0, warmUp)
  const renew = await cost(each, () => asked('renew', warmUp, warmUp + each))
  await list('')
  return {
    start: plane.start.ms,
    startCpu: plane.start.cpuMs,
    memory,
    enroll,
    renew,
    revoke: await cost(revoked, async () => {
      for (const name of names.slice(0, revoked))
        await plane.call('POST', `/v1/nodes/${name}/revoke`, { reason: 'bench' })
    }),
    list: await cost(lists, () => list('&membership=active')),
    filtered: await cost(lists, () => list('&vcluster=none')),
  }
}

const machines = async (scope: Scope, plane: PlaneProcess, prefix: string, count: number) => {
  const client = await startLoadClient(scope)
  const { host: address, hostname: name } = new URL(plane.nodeUrl)
  await client.ask({ do: 'connect', server: 'muster', address, name, roots: plane.rootPem })
  const names = Array.from({ length: count }, (_, at) => `${prefix}-${at}`)
  const secrets: string[] = []
  for (const node of names)
    secrets.push((await plane.call('POST', '/v1/tokens', { node, expires_ms: 3_600_000 }))['secret'] as string)
  await client.ask({ do: 'machines', names, secrets })
  return { client, names }
}

/** Enough to enroll 100,000 nodes and to write 10 million entries on a busy machine. */
const fillWithinMs = 3_600_000

const fill = (folder: string, nodes: number, denied: number, journal: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const args = [path.join(import.meta.dirname, 'fill.ts'), folder, nodes, denied, journal].map(String)
    const child = spawn(process.execPath, args, { stdio: 'inherit', timeout: fillWithinMs })
    child.once('exit', (code) => (code === 0 ? resolve() : reject(new Error(`filling ended with ${code}`))))
  })

/**
 * Channels of nodes, all of which stay open: what one of them holds, and what a revocation costs beside them. What a plane gives back some
 * time after it enrolled them is more than the first channels hold, so each count is compared with the one before it.
 */
const openMany = (t: Scope, folder: string): Promise<void> =>
  inScope(async (scope) => {
    const plane = await planeOn(scope, folder)
    const most = Math.max(...channels)
    const { client, names } = await machines(t, plane, 'held', most)
    const asked = async (order: { do: 'enroll'; keep: false } | { do: 'channel' }, from: number, to: number) => {
      const { done, failures } = await client.ask({ ...order, from, to, at_once: atOnce })
      if (done !== to - from) throw new Error(`${order.do}: ${failures?.[0]}`)
    }
    // All of them first: what the plane keeps of a node is not a channel's.
    await asked({ do: 'enroll', keep: false }, 0, most)
    await client.check(0, most)
    let opened = 0
    let cut = 0
    let before: { readonly open: number; readonly bytes: number } | null = null
    for (const count of counts) {
      await asked({ do: 'channel' }, opened, count)
      opened = count
      const now = { open: opened - cut, bytes: await steadyBytes(plane) }
      const cpuBefore = plane.cpuMs()
      for (const name of names.slice(cut, cut + cutEach))
        await plane.call('POST', `/v1/nodes/${name}/revoke`, { reason: 'bench' })
      cut += cutEach
      const held =
        before === null
          ? 'not compared, but what the next count is compared with'
          : `${((now.bytes - before.bytes) / 1024 / (now.open - before.open)).toFixed(0)} KiB for each further one (aim: at most 60)`
      before = now
      console.log(
        `${count.toLocaleString('en')} channels open: ${held}, ` +
          `${((plane.cpuMs() - cpuBefore) / cutEach).toFixed(2)} ms of CPU a revocation with its cut`,
      )
    }
  })

const cutEach = 20

/** The system gets memory back only some time after it was collected: read until it does not fall any more. */
const steadyBytes = async (plane: PlaneProcess): Promise<number> => {
  await untilIdle(plane.cpuMs)
  let bytes = await plane.settledBytes()
  for (let look = 0; look < 10; look++) {
    await new Promise((resolve) => setTimeout(resolve, 5000))
    const now = await plane.settledBytes()
    if (now > bytes - steadyWithin) return now
    bytes = now
  }
  console.log('the memory of the plane was still falling when it was read')
  return bytes
}
const steadyWithin = 1 << 20

const print = (results: readonly (readonly [string, Costs])[]): void => {
  const [, first] = results[0]!
  for (const what of Object.keys(labels) as (keyof Costs)[]) {
    console.log(`\n${labels[what]}`)
    for (const [name, costs] of results) {
      const ratio = costs[what] / first[what]
      console.log(`  ${name.padEnd(42)} ${costs[what].toFixed(2).padStart(10)}   ratio ${ratio.toFixed(2)}`)
    }
  }
  const [, last] = results.at(-1)!
  console.log(`\nratio ${(last.start / first.start).toFixed(2)} of the largest start to an empty one (aim: at most 3)`)
}

await benchRun(growth)
