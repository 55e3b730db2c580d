// What one join and one revocation cost in a WireGuard network of 10, 100 and 1,000 nodes: a real plane, a channel for every
// node, and every agent says what it has brought into force. Every node in the network has to know of either, so the least
// there is to send grows with the nodes; what must not grow is what each of them is sent.
//
// CPU is the plane's, over all rounds of one size, above what the same costs with a node that takes no part in the network.
//
//     npm run bench peers -- --most 1000 --rounds 10

import { createHash } from 'node:crypto'
import { revisionOf, type Peer } from '#domain/network/peer-set.ts'
import { newWireguardKey } from '#pki/wireguard-key.ts'
import { eventually } from '../test/process/eventually.ts'
import { decodeFrames } from '../test/process/web-socket-frames.ts'
import { benchRun } from './bench-run.ts'
import { inParallel } from './in-parallel.ts'
import { confirm, doorAt, enroll, newMachine, openChannel, textFrame, type Door, type Machine } from './machine.ts'
import { startPlane, type PlaneProcess } from './plane-process.ts'
import { benchOptions, wrongOption } from './options.ts'

// npm takes `--most N` without a `--` before it for its own, and passes on the number alone.
const { values, positionals } = benchOptions({
  options: { most: { type: 'string' }, rounds: { type: 'string' } },
  allowPositionals: true,
})
const most = Number(values.most ?? positionals[0] ?? 1000)
const rounds = Number(values.rounds ?? 10)
if (!Number.isInteger(most) || most < 10) wrongOption('--most takes a number from 10 on')
if (!Number.isInteger(rounds) || rounds < 1) wrongOption('--rounds takes a number from 1 on')
const sizes = [10, 100, 1000].filter((size) => size <= most)
const toldWithinMs = 60_000

type Member = { readonly machine: Machine; readonly peer: Peer; read: Reading }
/** What came over a channel since it was last looked at. */
type Reading = { bytes: number; frames: number; sent: number }
type Cost = { readonly bytes: number; readonly cpuMs: number; readonly tookMs: number }
type Result = { readonly size: number; readonly join: Cost; readonly revoke: Cost }

const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest()
const nothing: Cost = { bytes: 0, cpuMs: 0, tookMs: 0 }

await benchRun(async (t) => {
  const plane = await startPlane()
  t.after(() => plane.stop())
  for (const [name, mode] of [
    ['meshed', 'offered'],
    ['plain', 'off'],
  ])
    await plane.call('POST', '/v1/profiles', { name, from: 'gpu-cloud', set: { 'wireguard.mode': mode } })
  const door = doorAt(plane.nodeUrl, plane.rootPem)
  console.log(`peers: one plane, a channel for every node, ${rounds} joins and revocations at each size`)
  const members: Member[] = []
  const results: Result[] = []
  for (const size of sizes) {
    await grow(plane, door, members, size)
    const plain = await measure(plane, door, members, 'plain')
    const meshed = await measure(plane, door, members, 'meshed')
    const above = (what: 'join' | 'revoke'): Cost => ({
      ...meshed[what],
      cpuMs: Math.max(0, meshed[what].cpuMs - plain[what].cpuMs),
    })
    const result = { size, join: above('join'), revoke: above('revoke') }
    results.push(result)
    print(result)
  }
  for (const what of ['join', 'revoke'] as const) printRatios(what, results)
})

/** More nodes, each with a channel, each told of the others before by nobody but this program. */
async function grow(plane: PlaneProcess, door: Door, members: Member[], size: number): Promise<void> {
  const from = members.length
  const added: Member[] = Array.from({ length: size - from })
  await inParallel(16, added.length, async (at) => {
    added[at] = await newMember(plane, door, `node-${from + at}`, 'meshed')
  })
  members.push(...added)
  await inParallel(16, added.length, async (at) => {
    const member = added[at]
    if (member === undefined) return
    await openChannel(door, member.machine)
    listen(member)
    const others = members.filter((other) => other !== member).map(({ peer }) => peer)
    say(member, 'peers_have', { revision: revisionOf(sha256, others) })
  })
  await settled(plane)
}

async function newMember(plane: PlaneProcess, door: Door, id: string, profile: string): Promise<Member> {
  const { secret } = (await plane.call('POST', '/v1/tokens', { node: id, profile })) as { secret: string }
  const machine = newMachine(id, secret)
  const { publicKey } = newWireguardKey()
  const underlay = { ipv6: null, ipv4: '192.0.2.1', port: 51_820 }
  const part = { wireguard: { public_key: publicKey, underlay_endpoint: underlay } }
  await enroll(door, machine, part)
  await confirm(door, machine)
  const peer = { node: id, publicKey, endpoint: '192.0.2.1:51820', allowedIps: [`${machine.address}/128`] }
  return { machine, peer, read: { bytes: 0, frames: 0, sent: 1 } }
}

/** Counts what comes, and says of every set that it is in force. */
function listen(member: Member): void {
  let received: Buffer = Buffer.alloc(0)
  member.machine.socket?.on('data', (chunk: Buffer) => {
    const { frames, rest } = decodeFrames(Buffer.concat([received, chunk]))
    received = Buffer.from(rest)
    for (const { payload } of frames) {
      const frame = payload.length === 0 ? null : (JSON.parse(payload.toString()) as { type: string; body: PeersBody })
      if (frame?.type !== 'peers') continue
      member.read.bytes += payload.length
      member.read.frames++
      if (!frame.body.more) say(member, 'peers_applied', { revision: frame.body.revision, applied: true, detail: null })
    }
  })
}
type PeersBody = { revision: string; more: boolean }

function say(member: Member, type: string, body: object): void {
  const frame = { stream: 0, seq: ++member.read.sent, ack: 0, type, body }
  member.machine.socket?.write(textFrame(JSON.stringify(frame)))
}

async function measure(plane: PlaneProcess, door: Door, members: readonly Member[], profile: string) {
  let [join, revoke] = [nothing, nothing]
  const isTold = profile === 'meshed'
  for (let round = 0; round < rounds; round++) {
    const id = `${profile}-${members.length}-${round}`
    const joined = await costOf(plane, members, isTold, async () => {
      const { machine } = await newMember(plane, door, id, profile)
      machine.socket?.destroy()
    })
    const revoked = await costOf(plane, members, isTold, async () => {
      await plane.call('POST', `/v1/nodes/${id}/revoke`, { reason: 'measured' })
    })
    join = sum(join, joined)
    revoke = sum(revoke, revoked)
  }
  return { join, revoke }
}

/** Until every node that must know has the change, and the plane has their answers. */
async function costOf(
  plane: PlaneProcess,
  members: readonly Member[],
  isTold: boolean,
  run: () => Promise<void>,
): Promise<Cost> {
  for (const { read } of members) Object.assign(read, { bytes: 0, frames: 0 })
  const before = plane.cpuMs()
  const startedMs = performance.now()
  await run()
  const told = (): boolean => members.every(({ read }) => read.frames > 0)
  if (isTold) await eventually('everybody to be told', told, { withinMs: toldWithinMs, everyMs: 2 })
  const tookMs = performance.now() - startedMs
  await settled(plane)
  return { bytes: members.reduce((all, { read }) => all + read.bytes, 0), cpuMs: plane.cpuMs() - before, tookMs }
}

/** An answer of the plane comes after what it was sent before. */
async function settled(plane: PlaneProcess): Promise<void> {
  for (let count = 0; count < 3; count++) {
    await plane.call('GET', '/v1/domain')
    await new Promise((resolve) => setTimeout(resolve, 30))
  }
}

function sum(a: Cost, b: Cost): Cost {
  return { bytes: a.bytes + b.bytes, cpuMs: a.cpuMs + b.cpuMs, tookMs: a.tookMs + b.tookMs }
}

function print({ size, ...costs }: Result): void {
  for (const what of ['join', 'revoke'] as const) {
    const { bytes, cpuMs, tookMs } = costs[what]
    const each = bytes / rounds / size
    console.log(
      `${String(size).padStart(5)} nodes  one ${what.padEnd(6)}  ${(bytes / rounds / 1024).toFixed(1).padStart(7)} KiB, ` +
        `${each.toFixed(0)} bytes for each that must know; ${(cpuMs / rounds).toFixed(1)} ms CPU, ` +
        `${((cpuMs / rounds / size) * 1000).toFixed(0)} µs each; all told after ${(tookMs / rounds).toFixed(0)} ms`,
    )
  }
}

/** Ten times the nodes: ten times the bytes is linear, a hundred times would be the square. */
function printRatios(what: 'join' | 'revoke', results: readonly Result[]): void {
  const ratios = results.slice(1).map((result, at) => {
    const before = results[at]
    const ratio = before === undefined ? NaN : result[what].bytes / before[what].bytes
    return `${ratio.toFixed(2)} from ${before?.size} to ${result.size}`
  })
  console.log(`ratio of bytes   one ${what.padEnd(6)}  ${ratios.join(', ')} (linear: 10, the square: 100)`)
}
