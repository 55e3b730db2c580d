// A plane that is away: for 30 % of a certificate's life from the worst moment, and for three lives. Real processes, and
// certificates so short that a test can wait for their end. Mostly waiting: the tests run side by side.

import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { joinCrowd } from '../process/agent-crowd.ts'
import { joinMember, makeProfile, untilConnected, type Member, type Speaking } from '../process/agent-member.ts'
import { inScope, type Scope } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import { fairStopwatch } from '../process/fair-time.ts'
import { certificateBytes } from '../process/fault-proxy.ts'
import type { Json } from '../process/operator-call.ts'
import { startPlaneBehindProxies, type ProxiedPlane } from '../process/plane-behind-proxies.ts'
import { journalEntries } from '../process/plane-records.ts'
import { runMuster } from '../process/run-muster.ts'
import type { Plane } from '../process/start-plane.ts'

const long = process.env['MUSTER_LONG'] === '1'

const until = (atMs: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, Math.max(0, atMs - Date.now())))

/** Dead: its process is killed. Silent: connections hang, and nothing gets through. */
const outages = ['dead', 'silent'] as const
type Outage = (typeof outages)[number]

const startsWithinMs = 15_000

/** Away for so long and not longer: its door stays shut while it starts again. */
const away = async ({ plane, node, recovery }: ProxiedPlane, how: Outage, forMs: number): Promise<Plane> => {
  const overMs = Date.now() + forMs
  const doors = [node, recovery]
  let back = plane
  if (how === 'silent') for (const door of doors) door.blackhole()
  else {
    for (const door of doors) door.refuse()
    await plane.kill9()
    for (const door of doors) door.cut()
    await until(overMs - startsWithinMs)
    back = await plane.restart()
  }
  await until(overMs)
  for (const door of doors) door.pass()
  return back
}

type Certificate = { readonly serial: string; readonly notAfterMs: number; readonly renewAtMs: number }

const certificateOf = ({ id, says }: Speaking): Certificate => {
  const { serial, not_after, renew_at } = says()?.certificate ?? assert.fail(`${id} shows no certificate`)
  return { serial, notAfterMs: Date.parse(not_after), renewAtMs: Date.parse(renew_at) }
}

const verifies = async (plane: Plane): Promise<void> => {
  const { code, stdout } = await plane.muster('journal', 'verify')
  assert.equal(code, 0, stdout)
}

const nodesOf = async (plane: Plane): Promise<readonly Json[]> =>
  (await plane.api('GET', '/v1/nodes?limit=1000')).body.nodes

const noAlertIsLeft = (plane: Plane): Promise<true> =>
  eventually('all alerts to be over', async () => (await plane.api('GET', '/v1/alerts')).body.alerts.length === 0, {
    withinMs: 30_000,
    everyMs: 500,
  })

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`

// 30 % of a life.

const shortestLifeMs = 60_000
const longestLifeMs = 8 * shortestLifeMs
/** Of a life, between the end of the outage and that of the certificate, at the worst moment. */
const marginShare = 1 / 30
/** In less time of a processor than this nobody could renew: then it is the machine that is too busy. */
const leastMarginMs = 400
const aMomentMs = 300

/** Lives in which an agent gets as much of the processor as it needs, as busy as the machine is now. */
const livesHere = async (needs: { fairMs: number; shortestMs: number; longestMs: number }): Promise<number> => {
  const fairMs = fairStopwatch()
  await until(Date.now() + 3_000)
  const neededMs = needs.fairMs / (fairMs() / 3_000)
  let lifeMs = needs.shortestMs
  while (lifeMs < neededMs && lifeMs < needs.longestMs) lifeMs *= 2
  return lifeMs
}

type Group = { readonly name: string; readonly age: number; readonly members: readonly Member[] }

const joinGroups = async (t: Scope, plane: Plane, lifeMs: number): Promise<Group[]> => {
  const settings = [`certificate.lifetimeMs=${lifeMs}`, 'recovery.limit=100']
  await makeProfile(plane, 'usual', settings)
  await makeProfile(plane, 'late', [...settings, 'certificate.renewFrom=0.6666', 'certificate.renewTo=0.6667'])
  const group = async (name: string, age: number, profile: string, prefix: string): Promise<Group> => {
    const ids = Array.from({ length: long ? 4 : 2 }, (_, at) => `${prefix}-${at + 1}`)
    return { name, age, members: await Promise.all(ids.map((id) => joinMember(t, plane, { id, profile }))) }
  }
  const groups = await Promise.all([
    group('right before the latest moment of a renewal', 2 / 3, 'late', 'latest'),
    group('in the middle of a renewal', 2 / 3, 'late', 'middle'),
    group('right before the earliest moment of a renewal', 1 / 2, 'usual', 'earliest'),
  ])
  await untilConnected(groups.flatMap(({ members }) => members))
  return groups
}

/** Every node gets a certificate that has the wanted age when the outage begins. Answers when that is. */
const aligned = async (groups: readonly Group[], lifeMs: number): Promise<number> => {
  const oldest = Math.max(...groups.map(({ age }) => age))
  const startMs = Date.now()
  const renewed = groups.map(async ({ age, members }) => {
    // Lives are counted in whole seconds: rounding must not make a younger certificate older than meant.
    await until(startMs + (age === oldest ? 0 : (oldest - age) * lifeMs + 1_000))
    const before = members.map((member) => certificateOf(member).serial)
    for (const member of members) member.signal('SIGUSR2')
    await eventually(
      'new certificates',
      () => members.every((member, at) => certificateOf(member).serial !== before[at]),
      { withinMs: lifeMs / 3 },
    )
  })
  await Promise.all(renewed)
  const latest = groups.flatMap(({ age, members }) => (age === oldest ? members : []))
  return Math.min(...latest.map((member) => certificateOf(member).renewAtMs)) - aMomentMs
}

/** Some ask for a certificate that is made for them and does not arrive. False: they had not all asked when the outage was due. */
const loseRenewals = async ({ node }: ProxiedPlane, members: readonly Member[], beginMs: number): Promise<boolean> => {
  await until(beginMs - 4_000)
  const before = node.repliesDropped()
  node.dropReplies(1_000, certificateBytes)
  for (const member of members) member.signal('SIGUSR2')
  await until(beginMs)
  const haveAsked = (): boolean => node.repliesDropped() >= before + members.length
  if (haveAsked()) return true
  // They are late, and not lost.
  await eventually('the renewals to be under way', haveAsked, { withinMs: 20_000 })
  return false
}

const epochsOf = async (plane: Plane): Promise<readonly string[]> =>
  (await nodesOf(plane)).map(({ id, membership, epoch }) => `${id} ${membership} ${epoch}`)

/** How much was left of the certificate it had when it got the only successor of that; null: it expired, and the node recovered. */
const leftOf = async (
  plane: Plane,
  { id, stderr }: Member,
  certificates: ReadonlyMap<string, Certificate>,
): Promise<number | null> => {
  const had = certificates.get(id) ?? assert.fail(id)
  const found = async (): Promise<Json> => {
    const entries = await journalEntries(plane, { node: id })
    const successors = entries.filter(({ type, body }) => type === 'node.renewed' && body.renews === had.serial)
    assert.ok(successors.length <= 1, `${id}: ${successors.length} successors`)
    const serial = successors[0]?.serial ?? null
    const renewed = entries.find((entry) => entry.type === 'node.renewal_confirmed' && entry.serial === serial)
    return renewed ?? entries.find(({ type, atMs }) => type === 'node.recovered' && atMs > had.notAfterMs)
  }
  const { type, serial } = await eventually(`${id} to be renewed`, found, { withinMs: 60_000, everyMs: 200 })
  if (type === 'node.recovered') return null
  const gotAtMs = new RegExp(`"time":(\\d+),[^\n]*"serial":"${serial}"[^\n]*"certificate renewed"`).exec(stderr())?.[1]
  const leftMs = had.notAfterMs - Number(gotAtMs)
  return leftMs > 0 ? leftMs : null
}

/** `null`: the machine was too busy for lives of this length, which is no test. Else what there is to say. */
const shortOutages = async (t: Scope, lifeMs: number): Promise<readonly string[] | null> => {
  const proxied = await startPlaneBehindProxies(t)
  const groups = await joinGroups(t, proxied.plane, lifeMs)
  const everybody = groups.flatMap(({ members }) => members)
  const says: string[] = []
  let { plane } = proxied
  for (const how of outages) {
    const beginMs = await aligned(groups, lifeMs)
    const epochs = await epochsOf(plane)
    const had = new Map(everybody.map((one) => [one.id, certificateOf(one)]))
    if (!(await loseRenewals(proxied, groups[1]?.members ?? [], beginMs))) return null
    const sinceMs = performance.now()
    plane = await away({ ...proxied, plane }, how, 0.3 * lifeMs)
    const lastedMs = performance.now() - sinceMs
    if (lastedMs > 0.31 * lifeMs) return null
    const fairMs = fairStopwatch()
    await until(Math.min(...[...had.values()].map(({ notAfterMs }) => notAfterMs)))
    const marginMs = fairMs()
    for (const { name, members } of groups) {
      const left = await Promise.all(members.map((one) => leftOf(plane, one, had)))
      const inTime = left.filter((ms) => ms !== null)
      if (inTime.length < left.length && marginMs < leastMarginMs) return null
      assert.equal(inTime.length, left.length, `${name}: a certificate expired, with ${seconds(marginMs)} to renew it`)
      says.push(
        `${how} for ${seconds(lastedMs)} of lives of ${seconds(lifeMs)}, ${name}: ` +
          `${members.length} agents renewed, the last one ${seconds(Math.min(...inTime))} before its end`,
      )
    }
    await untilConnected(everybody)
    assert.deepEqual(await epochsOf(plane), epochs)
  }
  await noAlertIsLeft(plane)
  await verifies(plane)
  return says
}

// Three lives.

const briefLifeMs = long ? 60_000 : 20_000
/** Else a certificate ends again before all the others are back, and its node is in a later epoch than they. */
const leastBriefMs = 8_000
/** Waits grow to a minute; the next try after the return comes within that. */
const backWithinMs = 75_000

const joinEverybody = async (
  t: TestContext,
  plane: Plane,
  lifeMs: number,
): Promise<{ members: readonly Member[]; everybody: readonly Speaking[] }> => {
  await makeProfile(plane, 'brief', [`certificate.lifetimeMs=${lifeMs}`])
  const join = (number: number): Promise<Member> =>
    joinMember(t, plane, {
      id: `node-${number}`,
      profile: 'brief',
      args: number % 2 === 0 ? ['--recovery', 'bearer'] : [],
    })
  const members = await Promise.all(Array.from({ length: 10 }, (_, at) => join(at + 1)))
  const crowds = await Promise.all(
    (long ? ['a', 'b', 'c'] : []).map((prefix) => joinCrowd(t, plane, { prefix, count: 30, profile: 'brief' })),
  )
  const everybody = [...members, ...crowds.flat()]
  await untilConnected(everybody, { withinMs: 120_000 })
  return { members, everybody }
}

const connectionsBetween = ({ node, recovery }: ProxiedPlane, fromMs: number, toMs: number): readonly number[] =>
  [...node.came(), ...recovery.came()].filter((atMs) => atMs >= fromMs && atMs < toMs)

/** The most that fall into one second, wherever it begins. */
const mostInASecond = (times: readonly number[]): number => {
  const sorted = times.toSorted((one, other) => one - other)
  return Math.max(0, ...sorted.map((fromMs, at) => sorted.slice(at).filter((ms) => ms < fromMs + 1_000).length))
}

const untilBack = (plane: Plane, everybody: readonly Speaking[], epoch: number): Promise<true> =>
  eventually(
    `everybody to be back in epoch ${epoch}`,
    async () => {
      const nodes = await nodesOf(plane)
      return nodes.length === everybody.length && nodes.every((node) => node.channel_open && node.epoch === epoch)
    },
    { withinMs: backWithinMs, everyMs: 250 },
  )

/** What failed, what was asked, what was given and that it works: one story, told once. Answers when it was given. */
const storyOf = async (
  plane: Plane,
  { id }: Speaking,
  epoch: number,
): Promise<{ correlation: string; atMs: number }> => {
  const entries = await journalEntries(plane, { node: id })
  const only = (type: string, ofEpoch: number): Json => {
    const found = entries.filter((entry) => entry.type === type && entry.epoch === ofEpoch)
    assert.equal(found.length, 1, `${id}: ${found.length} ${type} of epoch ${ofEpoch}`)
    return found[0]
  }
  const requested = only('node.recovery_requested', epoch - 1)
  const recovered = only('node.recovered', epoch)
  const confirmed = only('node.confirmed', epoch)
  assert.equal(recovered.body.security_event, true)
  assert.equal(requested.body.failure_class, 'cert_expired')
  assert.deepEqual([recovered.correlation, confirmed.correlation], [requested.correlation, requested.correlation], id)
  return { correlation: requested.correlation, atMs: recovered.atMs }
}

/** Answers how long it took, in fair time. */
const renewNow = async (member: Member): Promise<number> => {
  const fairMs = fairStopwatch()
  const { code, stdout, stderr } = await runMuster(['agent', 'renew', '--now', '--state', member.state, '-o', 'json'])
  assert.equal(code, 0, `${member.id}: ${stdout}${stderr}`)
  return fairMs()
}

describe('a plane that is away', { concurrency: true }, () => {
  test('for 30 % of a lifetime from the worst moment: no certificate expires', async (t) => {
    let says: readonly string[] | null = null
    const needs = { fairMs: leastMarginMs / marginShare, shortestMs: shortestLifeMs, longestMs: longestLifeMs }
    for (let lifeMs = await livesHere(needs); says === null; lifeMs *= 2) {
      assert.ok(lifeMs <= longestLifeMs, 'the machine is too busy for lives of any length')
      says = await inScope((scope) => shortOutages(scope, lifeMs))
    }
    for (const line of says) t.diagnostic(line)
  })

  test('for three lifetimes: all agents come back without help, spread over time', async (t) => {
    const lifeMs = await livesHere({ fairMs: leastBriefMs, shortestMs: briefLifeMs, longestMs: 4 * briefLifeMs })
    const proxied = await startPlaneBehindProxies(t)
    const { members, everybody } = await joinEverybody(t, proxied.plane, lifeMs)
    let { plane } = proxied
    for (const [round, how] of outages.entries()) {
      const epoch = round + 2
      const beganMs = performance.now()
      plane = await away({ ...proxied, plane }, how, 3 * lifeMs)
      const [backMs, backAtMs] = [performance.now(), Date.now()]
      // An agent that is nudged does not wait for its next try.
      const nudged = how === 'dead' ? members.slice(0, 3) : []
      const hurried = await Promise.all(nudged.map(renewNow))
      await untilBack(plane, everybody, epoch)
      const settledMs = performance.now()
      const stories = await Promise.all(everybody.map((one) => storyOf(plane, one, epoch)))
      assert.equal(new Set(stories.map(({ correlation }) => correlation)).size, everybody.length)
      const during = connectionsBetween(proxied, beganMs, backMs)
      const after = connectionsBetween(proxied, backMs, settledMs)
      assert.ok(during.length <= 100 * everybody.length, `${during.length} connections while it was away`)
      assert.ok(after.length <= 20 * everybody.length, `${after.length} connections after its return`)
      const took = stories
        .slice(nudged.length)
        .map(({ atMs }) => Math.max(0, atMs - backAtMs))
        .toSorted((one, other) => one - other)
      const herd = mostInASecond(took)
      assert.ok((took.at(-1) ?? 0) - (took[0] ?? 0) >= 500, `everybody at once: ${took.join(', ')} ms`)
      if (everybody.length >= 100) assert.ok(herd <= everybody.length / 2, `${herd} in one second`)
      assert.ok(
        hurried.every((ms) => ms < 30_000),
        `renew --now took ${hurried.map(seconds).join(', ')}`,
      )
      t.diagnostic(
        `${how} for ${seconds(backMs - beganMs)}: ${everybody.length} agents back, half of them after ` +
          `${seconds(took[took.length >> 1] ?? 0)}, the last after ${seconds(took.at(-1) ?? 0)}, ` +
          `at most ${herd} in one second${hurried.length === 0 ? '' : `; renew --now took ${hurried.map(seconds).join(', ')}`}`,
      )
      t.diagnostic(
        `connections of each: ${(during.length / everybody.length).toFixed(1)} while away, ` +
          `${(after.length / everybody.length).toFixed(1)} after; of all in one second at most ` +
          `${mostInASecond(during)} and ${mostInASecond(after)}`,
      )
    }
    await noAlertIsLeft(plane)
    await verifies(plane)
  })
})
