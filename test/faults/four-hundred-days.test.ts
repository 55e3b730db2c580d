// A plane and its agents live through 400 days together: real processes, real TLS, one wall clock that the test moves.
// What is due by that clock has to happen by itself before it is moved again.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test, type TestContext } from 'node:test'
import { planeMark } from '#domain/core/plane-mark.ts'
import { readStatusFile } from '#agent/diagnostics/status-file.ts'
import { identityFile } from '#agent/state/credential-store.ts'
import { parseCertificate } from '#pki/parse-certificate.ts'
import { fromPem } from '#pki/pem.ts'
import { verifyServerChain } from '#pki/verify-chain.ts'
import { withPeer } from '../peers/peer.ts'
import { eventually } from '../process/eventually.ts'
import { openFakeTime, type FakeTime } from '../process/fake-time.ts'
import type { NodeTarget } from '../process/node-call.ts'
import { journalEntries } from '../process/plane-records.ts'
import { presentedChain } from '../process/presented-chain.ts'
import { residentBytes } from '../process/resident-memory.ts'
import { startAgent, type Agent } from '../process/start-agent.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'

const hour = 3600 * 1000
const day = 24 * hour
const long = process.env['MUSTER_LONG'] === '1'

type Plan = {
  readonly issuerKey: 'file' | 'memory'
  readonly days: number
  /** Less than a third of the lifetime: renewal may start as late as after two thirds of it. */
  readonly stepMs: number
  readonly lifetimeMs: number
  readonly serverLifetimeMs: number
  readonly intermediateLifetimeMs: number
  readonly restartEveryMs: number
}

const usual = { serverLifetimeMs: 90 * day, intermediateLifetimeMs: 365 * day }

test('for 400 days nothing expires: certificates, server certificates and intermediates are replaced automatically', (t) =>
  liveThrough(t, {
    issuerKey: 'file',
    days: 400,
    ...(long ? { stepMs: 0.3 * day, lifetimeMs: day } : { stepMs: 9 * day, lifetimeMs: 30 * day }),
    ...usual,
    restartEveryMs: Infinity,
  }))

test('with issuing keys in memory and a plane that restarts now and then the same holds', (t) =>
  liveThrough(t, {
    issuerKey: 'memory',
    days: long ? 400 : 60,
    ...(long ? { stepMs: 2.5 * day, lifetimeMs: 8 * day } : { stepMs: 6 * day, lifetimeMs: 20 * day }),
    ...usual,
    ...(long ? {} : { serverLifetimeMs: 30 * day, intermediateLifetimeMs: 100 * day }),
    restartEveryMs: long ? 40 * day : 25 * day,
  }))

const liveThrough = async (t: TestContext, plan: Plan): Promise<void> => {
  const library = withPeer(t, 'faketime')
  const openssl = withPeer(t, 'openssl')
  if (library === null || openssl === null) return
  const time = openFakeTime(tempFolder(t), library)
  const startedMs = time.nowMs()
  const passedDays = (): number => (time.nowMs() - startedMs) / day
  let plane = await startPlane(t, { env: time.env, args: planeArgs(plan) })
  const target = await plane.target()
  const agents = await startAgents(t, plane, time, plan.lifetimeMs)
  // A clock that jumps between a challenge and its answer fails the rehearsal, and the next one is a day away.
  for (const { id } of agents) await untilRehearsed(plane, id)
  const verify = verifier(t, openssl, target, time)
  const seen = { servers: new Set<string>(), issuers: new Set<string>(), nodes: new Set<string>() }

  const look = async (): Promise<void> => {
    const server = verify.server(await presentedChain(openssl, target))
    seen.servers.add(server.serial)
    for (const { agent } of agents) {
      const node = verify.node(agent)
      seen.nodes.add(node.serial)
      seen.issuers.add(node.issuer)
    }
  }

  let restartedMs = time.nowMs()
  const resident: number[] = []
  const settled = async (): Promise<void> => {
    for (const life of agents) await untilRenewed(plane, life, time)
    await untilPlaneIsYoung(plane, plan, time)
  }
  while (passedDays() < plan.days) {
    await settled()
    await look()
    resident.push(residentBytes(plane.pid))
    // While nothing is due: an agent that meets no plane tries again after minutes, for which nobody waits here.
    if (time.nowMs() - restartedMs >= plan.restartEveryMs) {
      restartedMs = time.nowMs()
      await plane.stop()
      plane = await plane.restart()
      await settled()
    }
    time.advance(plan.stepMs)
  }

  for (const life of agents) {
    const { id, agent } = life
    await untilRenewed(plane, life, time)
    // What the last step of the clock has raised is cleared by itself; what is not cleared is named.
    await eventually(`${id} to have no condition`, async () => {
      const node = (await plane.api('GET', `/v1/nodes/${id}`)).body
      assert.deepEqual([node.epoch, node.membership, node.conditions], [1, 'active', []])
      return true
    })
    assert.doesNotMatch(agent.stderr(), /CLIENT_CERT_EXPIRED|not taken any more/)
  }
  assert.equal((await journalEntries(plane, { type: 'host.enrolled' })).length, agents.length)
  assert.deepEqual(await journalEntries(plane, { type: 'node.lapsed' }), [])
  assert.deepEqual(await journalEntries(plane, { type: 'refused' }), [])
  assert.ok(seen.servers.size > plan.days / (plan.serverLifetimeMs / day), `${seen.servers.size} server certificates`)
  assert.ok(seen.issuers.size > plan.days / (plan.intermediateLifetimeMs / day), `${seen.issuers.size} issuers`)
  assert.ok(seen.nodes.size > plan.days / (plan.lifetimeMs / day), `${seen.nodes.size} node certificates`)
  const verified = await plane.muster('journal', 'verify')
  assert.equal(verified.code, 0, verified.stderr)
  assertNoGrowth(t, resident)
  await plane.stop()
  addLived(plane.data, time.nowMs() - startedMs)
  await untilForgotten(await plane.restart(), time)
  t.diagnostic(
    `${Math.round(passedDays())} days: ${seen.servers.size} server certificates, ${seen.issuers.size} issuers, ${seen.nodes.size} node certificates`,
  )
}

const planeArgs = (plan: Plan): string[] => [
  ...['--issuer-key', plan.issuerKey],
  ...['--server-lifetime', `${plan.serverLifetimeMs / day}d`],
  ...['--intermediate-lifetime', `${plan.intermediateLifetimeMs / day}d`],
  ...['--log-level', 'warn'],
]

type Life = { readonly id: string; readonly agent: Agent; readonly lifetimeMs: number }

/** One whose certificates live as the plan says, and one with the longest lifetime there is. */
const startAgents = async (t: TestContext, plane: Plane, time: FakeTime, lifetimeMs: number): Promise<Life[]> => {
  const set = `certificate.lifetimeMs=${lifetimeMs / day}d`
  const made = await plane.muster('profile', 'create', 'years', '--from', 'gpu-cloud', set)
  assert.equal(made.code, 0, made.stderr)
  const start = async (id: string, profile: string): Promise<Agent> => {
    const join = (await plane.api('POST', '/v1/tokens', profile === 'years' ? { node: id, profile } : { profile })).body
      .join
    return startAgent(t, { env: time.env, join, args: ['--node-id', id, '--log-level', 'warn'] })
  }
  return [
    { id: 'gpu-001', agent: await start('gpu-001', 'years'), lifetimeMs },
    { id: 'mesh-001', agent: await start('mesh-001', 'mesh-paas'), lifetimeMs: 90 * day },
  ]
}

/** An agent rehearses its recovery seconds after it is connected, and then once a day by its monotonic clock. */
const untilRehearsed = (plane: Plane, id: string): Promise<true> =>
  eventually(`${id} to have rehearsed its recovery`, async () => {
    const { recoverable } = (await plane.api('GET', `/v1/nodes/${id}`)).body
    assert.deepEqual(recoverable, { proven: true, why: 'rehearsed' })
    return true
  })

/** Its newest certificate is not due, and its channel is one of that certificate. */
const untilRenewed = (plane: Plane, { id, agent, lifetimeMs }: Life, time: FakeTime): Promise<true> =>
  eventually(
    `${id} to have renewed and come back`,
    async () => {
      tryAgain(agent, time)
      const { certificates, sessions } = (await plane.api('GET', `/v1/nodes/${id}`)).body
      const [newest] = certificates.toSorted((a: Issued, b: Issued) => b.issued_at.localeCompare(a.issued_at))
      const dueMs = Date.parse(newest.issued_at) + (lifetimeMs * 2) / 3
      const isDone = time.nowMs() < dueMs && sessions.some(({ serial }: { serial: string }) => serial === newest.serial)
      assert.ok(isDone, `${JSON.stringify({ certificates, sessions })}\n${agent.stderr().slice(-2000)}`)
      return true
    },
    { withinMs: 60_000 },
  )

/** A renewal that failed on a busy machine is tried again minutes later, by the clock that only the test moves. */
const tryAgain = (agent: Agent, time: FakeTime): void => {
  const failed = readStatusFile(agent.state)?.troubles.find(({ place }) => place === 'renewal')
  const waitMs = Date.parse(failed?.next_try_at ?? '') - time.nowMs()
  if (waitMs > 0) time.advance(waitMs)
}

type Issued = { readonly issued_at: string }

/** Neither its own certificate nor the authority that signs is past half of its life. */
const untilPlaneIsYoung = (plane: Plane, { serverLifetimeMs }: Plan, time: FakeTime): Promise<true> =>
  eventually(
    'the plane to have renewed what is due',
    async () => {
      const { authorities, server_certificate: server } = (await plane.api('GET', '/v1/ca')).body
      const issuing = authorities.find(({ role, signing }: Signs) => role === 'issuing' && signing)
      const issuingHalfMs = (Date.parse(issuing.not_before) + Date.parse(issuing.not_after)) / 2
      const serverHalfMs = Date.parse(server.not_after) - serverLifetimeMs / 2
      return time.nowMs() < serverHalfMs && time.nowMs() < issuingHalfMs
    },
    { withinMs: 30_000 },
  )

type Signs = { readonly role: string; readonly signing: boolean }

/** Judges every chain at the time of the plane, and by OpenSSL too when it is new. */
const verifier = (t: TestContext, openssl: string, target: NodeTarget, time: FakeTime) => {
  const folder = tempFolder(t)
  const judged = new Set<string>()
  const file = (name: string, content: string): string => {
    fs.writeFileSync(path.join(folder, name), content)
    return path.join(folder, name)
  }
  const opensslVerify = (serial: string, purpose: string, [leaf = '', ...above]: readonly string[]): void => {
    if (judged.has(serial)) return
    judged.add(serial)
    const args = ['verify', '-x509_strict', '-purpose', purpose, '-attime', String(Math.floor(time.nowMs() / 1000))]
    const roots = ['-CAfile', file('roots.pem', target.roots.join(''))]
    const chain = ['-untrusted', file('chain.pem', above.join('')), file('leaf.pem', leaf)]
    assert.match(execFileSync(openssl, [...args, ...roots, ...chain], { encoding: 'utf8' }), /: OK$/m)
  }
  return {
    server(chain: readonly string[]): { serial: string } {
      const anchor = { roots: target.roots.map(derOf) }
      const host = new URL(target.url).hostname
      const mark = { uri: planeMark('muster.local'), required: true }
      const verdict = verifyServerChain({ chain: chain.map(derOf), anchor, mark, host, nowMs: time.nowMs() })
      assert.ok(verdict.kind === 'trusted', JSON.stringify(verdict))
      opensslVerify(verdict.leaf.serial, 'sslserver', chain)
      return verdict.leaf
    },
    node(agent: Agent): { serial: string; issuer: string } {
      const { identity } = JSON.parse(fs.readFileSync(identityFile(agent.state), 'utf8'))
      const pems: string[] = identity.current.chainPem.match(/-----BEGIN[^]+?-----END CERTIFICATE-----\n/g)
      const leaf = parseCertificate(derOf(pems[0] ?? ''))
      assert.ok(leaf.kind === 'certificate')
      assert.ok(time.nowMs() < leaf.notAfterMs, `${agent.state} lives under an expired certificate`)
      opensslVerify(leaf.serial, 'sslclient', pems)
      return { serial: leaf.serial, issuer: leaf.authorityKeyId ?? '' }
    },
  }
}

const derOf = (pem: string): Uint8Array => fromPem('CERTIFICATE', pem) ?? assert.fail('no certificate')

/** Garbage comes and goes, so thirds are compared by their lowest. */
const assertNoGrowth = (t: TestContext, resident: readonly number[]): void => {
  const third = Math.ceil(resident.length / 3)
  const [early, late] = [Math.min(...resident.slice(0, third)), Math.min(...resident.slice(-third))]
  const mib = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(0)} MiB`
  t.diagnostic(`resident memory of the plane: ${mib(early)} in the first third, ${mib(late)} in the last`)
  assert.ok(late < early + 64 * 2 ** 20, `${mib(early)} grew to ${mib(late)}`)
}

/**
 * Nothing is forgotten by a wall clock, since it may be wrong: only by the time for which planes have led, by their monotonic
 * clocks. Those show the seconds that this test really took, so the days are added where a plane would have counted them.
 */
const addLived = (data: string, ms: number): void => {
  const database = new DatabaseSync(path.join(data, 'muster.db'))
  const { changes } = database.prepare('UPDATE lived SET ms = ms + ? WHERE id = 1').run(Math.floor(ms))
  database.close()
  assert.equal(changes, 1)
}

/** What expired more than a month ago is not kept: otherwise the store would grow for as long as it lives. */
const untilForgotten = (plane: Plane, time: FakeTime): Promise<true> => {
  const monthAgoMs = time.nowMs() - 30 * day
  return eventually(
    'certificates that expired more than a month ago to be forgotten',
    () => {
      // It is done once an hour; a plane that was busy in one does it in the next.
      time.advance(hour)
      const database = new DatabaseSync(path.join(plane.data, 'muster.db'), { readOnly: true })
      const oldest = database.prepare('SELECT min(not_after_ms) AS ms FROM certificate').get()
      database.close()
      return Number(oldest?.['ms']) >= monthAgoMs - hour
    },
    { withinMs: 30_000, everyMs: 2000 },
  )
}
