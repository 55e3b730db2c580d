// Certificates of a minute, exchanged again and again under a stream of numbered reports: the reader at the other end
// must not notice. Mostly waiting: both tests run side by side, and scripts/test.ts starts this file first.

import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import type { Random } from '#platform/random.ts'
import { joinMember, makeProfile, untilConnected, type Member } from '../process/agent-member.ts'
import { eventually } from '../process/eventually.ts'
import { certificateBytes, type FaultProxy } from '../process/fault-proxy.ts'
import type { Json } from '../process/operator-call.ts'
import { startPlaneBehindProxies } from '../process/plane-behind-proxies.ts'
import { openPlaneLog, type PlaneLog } from '../process/plane-log.ts'
import { journalEntries, storedCertificates } from '../process/plane-records.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { withSeed } from '../process/with-seed.ts'

const long = process.env['MUSTER_LONG'] === '1'
const rotations = long ? 20 : 5
const lifetimeMs = 60_000
const reportEveryMs = long ? 250 : 100
/** A certificate is renewed at two thirds of its life at the latest. */
const longestMs = rotations * lifetimeMs * (2 / 3) + 60_000

/** Ways to keep and to use keys, one agent each; in the long test several. */
const kinds = [
  ['file', []],
  ['ed25519', ['--key-type', 'ed25519']],
  ['bearer', ['--recovery', 'bearer']],
  ['memory', ['--key-storage', 'memory']],
  // A rehearsal shows the counter that the next renewal replaces.
  ['rehearsing', ['--rehearse-every', '2s']],
] as const

const joinAll = async (t: TestContext, plane: Plane, of: readonly (typeof kinds)[number][]): Promise<Member[]> => {
  await makeProfile(plane, 'minute', [`certificate.lifetimeMs=${lifetimeMs}`])
  const each = Array.from({ length: long ? 3 : 1 }, (_, at) => at + 1)
  const members = await Promise.all(
    of.flatMap(([kind, args]) =>
      each.map((at) => {
        const own = [...args, '--report-every', `${reportEveryMs}ms`, '--metrics-listen', '127.0.0.1:0']
        return joinMember(t, plane, { id: `${kind}-${at}`, profile: 'minute', args: own })
      }),
    ),
  )
  await untilConnected(members, { withinMs: 180_000 })
  return members
}

const renewalsOf = (plane: Plane, { id }: Member): Promise<readonly Json[]> =>
  journalEntries(plane, { node: id, type: 'node.renewed' })

const untilRotated = async (plane: Plane, members: readonly Member[]): Promise<void> => {
  const enough = async (): Promise<boolean> => {
    for (const member of members) if ((await renewalsOf(plane, member)).length < rotations) return false
    return true
  }
  await eventually(`${rotations} rotations of everybody`, enough, { withinMs: longestMs, everyMs: 2_000 })
}

/** Once its last certificate is in use and the next one is not due yet: what is under way cannot be counted. */
const stopBetweenRenewals = async (plane: Plane, member: Member): Promise<void> => {
  const isQuiet = async (): Promise<boolean> => {
    const renewed = await renewalsOf(plane, member)
    const confirmed = await journalEntries(plane, { node: member.id, type: 'node.renewal_confirmed' })
    const shown = member.says()?.certificate
    const isSettled = renewed.length === confirmed.length && shown?.serial === renewed.at(-1)?.serial
    const isBetween = shown !== undefined && shown !== null && Date.parse(shown.renew_at) - Date.now() > 2_000
    // A plane that is behind with its reports could not take them all before a stopping agent gives up waiting for it.
    return isSettled && isBetween && hasReported(member.says(), 0)
  }
  await eventually(`${member.id} to be between two renewals`, isQuiet, { withinMs: lifetimeMs, everyMs: 250 })
  await member.stop()
}

type Taken = { readonly number: number; readonly atMs: number }

/** By node: the reports that the plane says it took, in the order in which it took them. */
const takenIn = (log: PlaneLog): ReadonlyMap<string, readonly Taken[]> => {
  const taken = new Map<string, Taken[]>()
  for (const { msg, node, report, time } of log.lines()) {
    if (msg !== 'report taken') continue
    const ofNode = taken.get(node) ?? []
    taken.set(node, ofNode)
    ofNode.push({ number: report, atMs: time })
  }
  return taken
}

/** None lost, none twice, in order; and what the agent counted is what the plane took. */
const streamIsWhole = (taken: readonly Taken[], member: Member): void => {
  const counted = member.says()?.reports ?? assert.fail(`${member.id} has counted nothing`)
  for (const [index, { number }] of taken.entries()) {
    assert.equal(number, index + 1, `${member.id}: report ${number} in the place of ${index + 1}`)
  }
  assert.deepEqual([counted.sent, counted.acknowledged], [taken.length, taken.length], member.id)
}

const wholeStreams = (log: PlaneLog, members: readonly Member[]): readonly (readonly Taken[])[] => {
  const taken = takenIn(log)
  return members.map((member) => {
    const ofNode = taken.get(member.id) ?? []
    streamIsWhole(ofNode, member)
    return ofNode
  })
}

const longestGapMs = (taken: readonly Taken[]): number =>
  Math.max(...taken.slice(1).map(({ atMs }, index) => atMs - (taken[index]?.atMs ?? atMs)))

/** Every certificate renews the one before it, all are of one epoch, and the agent has the last one. */
const checkOneLineOfCertificates = async (plane: Plane, member: Member): Promise<number> => {
  const entries = await journalEntries(plane, { node: member.id })
  const renewed = entries.filter(({ type }: Json) => type === 'node.renewed')
  const confirmed = entries.filter(({ type }: Json) => type === 'node.renewal_confirmed')
  const enrolled = entries.filter(({ type }: Json) => type === 'host.enrolled')
  const serials = [...enrolled, ...renewed].map(({ serial }: Json) => serial)
  assert.equal(enrolled.length, 1, member.id)
  assert.equal(new Set(serials).size, serials.length, member.id)
  for (const [index, { body }] of renewed.entries()) {
    assert.deepEqual([body.renews, body.replaces], [serials[index], null], member.id)
  }
  assert.deepEqual(
    confirmed.map(({ serial }: Json) => serial),
    serials.slice(1),
    member.id,
  )
  assert.deepEqual(
    (await storedCertificates(plane, member.id)).map(({ serial }) => serial),
    serials,
  )
  assert.equal(member.says()?.certificate?.serial, serials.at(-1), member.id)
  const { body } = await plane.api('GET', `/v1/nodes/${member.id}`)
  assert.deepEqual([body.epoch, body.membership, body.conditions], [1, 'active', []], member.id)
  return renewed.length
}

const neverHappened = async (plane: Plane, types: readonly string[]): Promise<void> => {
  const found = (await journalEntries(plane)).filter(({ type }: Json) => types.includes(type))
  assert.deepEqual(found, [])
  assert.equal((await plane.muster('journal', 'verify')).code, 0)
}

const nothingOfRecovery = [
  'node.recovery_requested',
  'node.recovered',
  'node.superseded',
  'node.lapsed',
  'alert.raised',
]

const metric = async ({ stderr, id }: Member, name: string): Promise<number> => {
  const port = /"port":(\d+),"msg":"metrics are served/.exec(stderr())?.[1] ?? assert.fail(`${id} shows no metrics`)
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  const samples = text.split('\n').filter((line) => line.startsWith(`muster_node_agent_${name}`))
  return samples.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
}

const withoutChannel = 'observability_dropped_records_total{source="reports",reason="no_channel"'

describe('with certificates of a minute', { concurrency: true }, () => {
  test(`${rotations} rotations under a stream of reports: none is lost, none comes twice`, async (t) => {
    const log = openPlaneLog(t, 'debug')
    const plane = await startPlane(t, log.options)
    const members = await joinAll(t, plane, kinds)
    const droppedBefore = await Promise.all(members.map((member) => metric(member, withoutChannel)))
    const sinceMs = performance.now()
    await untilRotated(plane, members)
    const lastedMs = performance.now() - sinceMs
    const droppedSince = await Promise.all(members.map((member) => metric(member, withoutChannel)))
    assert.deepEqual(droppedSince, droppedBefore, 'there always was a channel to send them over')
    for (const member of members) {
      assert.equal(await metric(member, 'cert_renewal_failures_total'), 0, member.id)
      assert.deepEqual(member.says()?.troubles, [], member.id)
    }
    await Promise.all(members.map((member) => stopBetweenRenewals(plane, member)))

    const taken = wholeStreams(log, members)
    const renewed = await Promise.all(members.map((member) => checkOneLineOfCertificates(plane, member)))
    await neverHappened(plane, [...nothingOfRecovery, 'node.condition_raised', 'refused', 'node.second_holder'])
    const gaps = taken.map(longestGapMs)
    assert.ok(Math.max(...gaps) < 15_000, `a gap in a stream: ${gaps.join(', ')} ms`)
    t.diagnostic(
      `${members.length} agents, ${sum(renewed)} rotations in ${seconds(lastedMs)}, ` +
        `${sum(taken.map(({ length }) => length))} messages, longest gap ${Math.max(...gaps)} ms`,
    )
  })

  test(`the same with a network that cuts, loses answers and swallows a connection whole`, async (t) =>
    withSeed(async (random) => {
      const log = openPlaneLog(t, 'debug')
      const { plane, node: proxy } = await startPlaneBehindProxies(t, log.options)
      const members = await joinAll(t, plane, [kinds[0], kinds[2]])
      const over = new AbortController()
      const spoiled = spoil(proxy, random, over.signal)
      const sinceMs = performance.now()
      try {
        await untilRotated(plane, members)
      } finally {
        over.abort()
      }
      const lastedMs = performance.now() - sinceMs
      const { cuts, freezes } = await spoiled
      await untilReported(members, Date.now() + reportedAfterMs)
      await Promise.all(members.map((member) => stopBetweenRenewals(plane, member)))

      const taken = wholeStreams(log, members)
      const renewed = await Promise.all(members.map((member) => checkOneLineOfCertificates(plane, member)))
      await neverHappened(plane, [...nothingOfRecovery, 'node.second_holder'])
      assert.ok(cuts >= rotations && proxy.repliesDropped() > 0)
      t.diagnostic(
        `${members.length} agents, ${sum(renewed)} rotations in ${seconds(lastedMs)}, ` +
          `${sum(taken.map(({ length }) => length))} messages over ${proxy.came().length} connections, ${cuts} cuts, ` +
          `${proxy.repliesDropped()} certificates lost on the way, ${freezes} connections swallowed`,
      )
    }))
})

/** Longer than a report is on its way: what was sent before the last fault has been sent again by then, or was received. */
const reportedAfterMs = 3_000

/** What an agent says of itself may be a second old, so it has to be later than the last fault; null: not yet. */
const hasReported = (said: ReturnType<Member['says']>, fromMs: number): boolean => {
  if (said?.reports === undefined || Date.parse(said.written_at) < fromMs) return false
  const { sent, acknowledged } = said.reports
  return said.channel.open && said.troubles.length === 0 && sent - acknowledged <= 2
}

const untilReported = (members: readonly Member[], fromMs: number): Promise<true> =>
  eventually('every member to report again', () => members.every((member) => hasReported(member.says(), fromMs)), {
    withinMs: 60_000,
    everyMs: 250,
  })

/** Cuts every few seconds; now and then an answer with a certificate is lost, or what is open goes silent for a while. */
const spoil = async (
  proxy: FaultProxy,
  random: Random,
  signal: AbortSignal,
): Promise<{ cuts: number; freezes: number }> => {
  const done = { cuts: 0, freezes: 0 }
  const pause = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const wake = (): void => {
        clearTimeout(timer)
        signal.removeEventListener('abort', wake)
        resolve()
      }
      const timer = setTimeout(wake, ms)
      signal.addEventListener('abort', wake)
    })
  for (let round = 1; !signal.aborted; round++) {
    await pause(6_000 + random.unit() * 12_000)
    if (round % 3 === 0) proxy.dropReplies(1, certificateBytes)
    if (round % 9 === 5) {
      proxy.freeze()
      done.freezes++
      await pause(5_000)
      proxy.cut()
    } else {
      proxy.cut()
      done.cuts++
    }
  }
  proxy.pass()
  return done
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0)
const seconds = (ms: number): string => `${Math.round(ms / 1000)} s`
