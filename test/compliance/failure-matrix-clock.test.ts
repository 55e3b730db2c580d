// Seed 003, failure matrix: "clock skew". The clock of the machine is wrong, the plane's is right: libfaketime under the
// agent alone.

import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { agentExitCodes } from '#agent/core/outcome.ts'
import { readStatusFile } from '#agent/diagnostics/status-file.ts'
import { withPeer } from '../peers/peer.ts'
import { joinMember, untilConnected, type Member } from '../process/agent-member.ts'
import { eventually } from '../process/eventually.ts'
import { openFakeTime } from '../process/fake-time.ts'
import { storedCertificates } from '../process/plane-records.ts'
import { sharedPlane } from '../process/shared-plane.ts'
import { startAgent } from '../process/start-agent.ts'
import type { Plane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { stoppedUntilExpired } from '../system/agent-recovery-setup.ts'
import { journalOf, makeToken, nodeOf, tokenOf, untilMembership } from './ask-plane.ts'
import {
  again,
  agentExplains,
  entriesOf,
  issuedTo,
  liveFor,
  longLifeMs,
  makeLongLived,
  planeExplains,
  recoveryStory,
  setLifetime,
  untilBack,
  untilCondition,
  untilItSays,
  untilItSaysNothingOf,
  untilNoCondition,
} from './failure-story.ts'

const lifetimeMs = 10_000
const minute = 60_000
const year = 365.25 * 24 * 3600 * 1000

const domain = sharedPlane()

/** How far the clock is off; seconds after the beginning of 1970 it is as far behind as can be. */
const skews = {
  '10 minutes ahead': () => 10 * minute,
  '10 minutes behind': () => -10 * minute,
  'at 1970': () => 5_000 - Date.now(),
  '10 years ahead': () => 10 * year,
} as const

/** What each of the brief certificates had lived of its time when the next one was issued, oldest first. */
const partsLived = async (plane: Plane, id: string): Promise<readonly number[]> => {
  const issued = await storedCertificates(plane, id)
  return issued.flatMap(({ serial, issuedAtMs, notAfterMs }) => {
    const next = issued.find(({ renews }) => renews === serial)
    const isBrief = notAfterMs - issuedAtMs < 2 * lifetimeMs
    return next === undefined || !isBrief ? [] : [(next.issuedAtMs - issuedAtMs) / (notAfterMs - issuedAtMs)]
  })
}

const untilRenewed = async (plane: Plane, id: string, times: number): Promise<true> => {
  const before = (await partsLived(plane, id)).length
  const isRenewed = async (): Promise<boolean> => (await partsLived(plane, id)).length >= before + times
  return eventually(`${id} to renew ${times} times`, isRenewed, { withinMs: 60_000, everyMs: 200 })
}

describe('clock skew', { concurrency: true }, () => {
  for (const [words, skewMs] of Object.entries(skews)) {
    test(`clock skew: with its clock ${words} a node says clock_skew, keeps one lineage without churn, recovers, and is well when the clock is`, (t) =>
      liveWith(t, words.replaceAll(' ', '-'), skewMs()))
  }

  for (const [words, skewMs] of Object.entries({ ...skews, '10 years behind': () => -10 * year })) {
    if (words.includes('minutes')) continue
    test(`clock skew: a first enrollment with the clock ${words} fails closed as clock_skew, names both times, and costs nothing`, (t) =>
      enrollWith(t, `new-${words.replaceAll(' ', '-')}`, skewMs()))
  }
})

const liveWith = async (t: TestContext, id: string, skewMs: number): Promise<void> => {
  const library = withPeer(t, 'faketime')
  if (library === null) return
  const plane = domain()
  const time = openFakeTime(tempFolder(t), library)
  const options = { env: time.env, args: ['--report-every', '500ms'] }
  await makeLongLived(plane, id)
  const member = await joinMember(t, plane, { id, profile: id, ...options })
  await untilConnected([member])
  await member.stop()

  time.advance(skewMs)
  const skewed = again(member)
  await saysSkew(plane, skewed, skewMs, time.env)
  await untilBack(plane, skewed, 1)
  assert.deepEqual(await issuedTo(plane, id), { renewals: 0, recoveries: 0 }, 'asked for because of a clock alone')
  await liveFor(plane, id, lifetimeMs, skewed)
  await untilRenewed(plane, id, 2)
  assert.deepEqual(await entriesOf(plane, id, 'refused', 'node.recovery_requested', 'node.recovered'), [])

  await stoppedUntilExpired(skewed)
  await setLifetime(plane, id, longLifeMs)
  const recovered = again(skewed)
  await untilBack(plane, recovered, 2)
  const story = await recoveryStory(plane, recovered)
  const requested = story.find(({ type }) => type === 'node.recovery_requested')
  assert.equal(requested.body.failure_class, 'cert_expired')
  assert.ok(Math.abs(Date.parse(requested.body.failed_since) - requested.atMs) < minute, JSON.stringify(requested))
  await untilCondition(plane, id, 'clock_skew')

  time.advance(-skewMs)
  await untilItSaysNothingOf(recovered, 'clock')
  await untilNoCondition(plane, id, 'clock_skew')

  // No churn: each certificate served its time, in every clock, and was replaced before it was over.
  const parts = await partsLived(plane, id)
  const shown = parts.map((part) => part.toFixed(2)).join(' ')
  assert.ok(
    parts.every((part) => part > 0.35 && part < 1),
    `renewed after ${shown} of their lives`,
  )
  assert.equal((await entriesOf(plane, id, 'node.recovered')).length, 1)
  assert.equal((await nodeOf(plane, id)).epoch, 2)
  t.diagnostic(`renewed after ${shown} of each life; one recovery`)
}

const saysSkew = async (
  plane: Plane,
  member: Member,
  skewMs: number,
  env: Readonly<Record<string, string>>,
): Promise<void> => {
  // Above 0 it is behind.
  const isRight = (behindMs: unknown): boolean => Math.abs(Number(behindMs) + skewMs) < minute
  const said = await untilItSays(member, 'clock', 'clock_skew')
  assert.ok(isRight(said.evidence?.['skew_ms']), JSON.stringify(said.evidence))
  assert.match(said.next, /timedatectl/)
  const condition = await untilCondition(plane, member.id, 'clock_skew')
  assert.ok(isRight(condition.evidence.skew_ms), JSON.stringify(condition))
  const { evidence, scheduling } = await nodeOf(plane, member.id)
  assert.ok(isRight(evidence.clock_skew_ms))
  assert.ok(scheduling.reasons.includes('clock_skew'))
  assert.match(await planeExplains(plane, member.id), /clock_skew/)
  const explained = await agentExplains(member, env)
  assert.match(explained.wrong.join('\n'), /clock_skew/)
  assert.doesNotMatch(explained.wrong.join('\n'), /cert_expired/)
}

const enrollWith = async (t: TestContext, id: string, skewMs: number): Promise<void> => {
  const library = withPeer(t, 'faketime')
  if (library === null) return
  const plane = domain()
  const time = openFakeTime(tempFolder(t), library, skewMs)
  const token = await makeToken(plane, { node: id })
  const agent = startAgent(t, { env: time.env, join: token.join })
  assert.equal((await agent.ended).code, agentExitCodes.untrusted, agent.stderr())
  const { code, text } = readStatusFile(agent.state)?.outcome ?? assert.fail('it said nothing')
  assert.equal(code, 'clock_skew')
  const own = new Date(Date.now() + skewMs).toISOString().slice(0, 7)
  const planes = new Date().toISOString().slice(0, 7)
  assert.ok(text?.includes(own) && text.includes(planes), `${own} and ${planes} in: ${text}`)
  assert.equal((await tokenOf(plane, token.id)).state, 'unused')
  assert.deepEqual(await journalOf(plane, { node: id, type: 'refused' }), [])

  time.advance(-skewMs)
  const right = startAgent(t, { env: time.env, join: token.join, state: agent.state })
  await untilMembership(plane, id, 'active', { withinMs: 30_000 })
  await right.stop()
}
