// Two machines from one state folder: which of them stays, what the other is told, and how an operator ends it. Whatever
// is decided, afterwards one machine works, and what the other has is worth nothing (ruling 6).

import assert from 'node:assert/strict'
import * as path from 'node:path'
import { describe, test } from 'node:test'
import { readStatusFile } from '#agent/status-file.ts'
import type { Identity } from '#agent/identity/credentials.ts'
import { keyCredential } from '#agent/recovery/prove.ts'
import { makeCsr } from '#pki/csr.ts'
import { generateKey } from '#pki/keys.ts'
import type { Scope } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import { keptIdentity } from '../process/kept-credentials.ts'
import {
  copyOf,
  invite,
  newMachine,
  nodeOf,
  nudgedUntil,
  reinstalled,
  untilBack,
  untilExpired,
  untilRenewed,
  type Machine,
  type Recovery,
} from '../process/mortal-machine.ts'
import { nodeCall } from '../process/node-call.ts'
import type { Json } from '../process/operator-call.ts'
import { journalEntries } from '../process/plane-records.ts'
import { openRawChannel } from '../process/raw-channel.ts'
import { askChallenge, rawEvidence } from '../process/raw-recovery.ts'
import { shared } from '../process/shared-plane.ts'
import type { Agent } from '../process/start-agent.ts'
import { startPlane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'

const patient = { withinMs: 120_000, everyMs: 200 } as const
const drainMs = 1_000

const plane = shared(async (scope) => {
  const started = await startPlane(scope)
  const make = async (name: string, set: object): Promise<void> => {
    const recovery = { 'recovery.limit': 1000, 'recovery.windowMs': 1000 }
    const made = await started.api('POST', '/v1/profiles', { name, from: 'gpu-cloud', set: { ...recovery, ...set } })
    assert.equal(made.status, 201, JSON.stringify(made.body))
  }
  await started.api('PATCH', '/v1/domain', { set: { drainMs } })
  await make('lasting', { 'certificate.lifetimeMs': 120_000 })
  await make('brief', { 'certificate.lifetimeMs': 10_000 })
  await make('strict', { 'certificate.lifetimeMs': 120_000, onDuplicate: 'fence' })
  return started
})

const conditionsOf = async (machine: Machine): Promise<readonly string[]> =>
  (await nodeOf(machine)).conditions.map(({ name }: Json) => name)

const muster = async (...args: string[]): Promise<string> => {
  const { code, stdout, stderr } = await plane().muster(...args)
  assert.equal(code, 0, `muster ${args.join(' ')}: ${stderr}`)
  return stdout
}

/** Its agent has been told this, and says so. */
const untilTold = (machine: Machine, agent: Agent, code: string): Promise<true> =>
  eventually(
    `${machine.id}: to be told ${code}`,
    () => readStatusFile(machine.state)?.troubles.some((trouble) => trouble.code === code) ?? false,
    patient,
  ).catch((error: unknown) => {
    throw new Error(agent.stdout() + agent.stderr(), { cause: error })
  })

const untilMembership = (machine: Machine, kind: string): Promise<Json> =>
  eventually(
    `${machine.id} to be ${kind}`,
    async () => {
      const node = await nodeOf(machine)
      return node.membership === kind ? node : null
    },
    patient,
  )

type Held = { readonly machine: Machine; readonly agent: Agent }

const renewedOnce = async (machine: Machine, agent: Agent): Promise<void> => {
  await untilRenewed(machine, agent, keptIdentity(machine.state).current.serial)
  await untilBack(machine, agent)
}

/** By what the condition says: addresses, processes and hardware of both. */
const checkBothNamed = async (machine: Machine, claimant: RegExp, holder: RegExp): Promise<void> => {
  const { conditions } = await nodeOf(machine)
  const { evidence } = conditions.find(({ name }: Json) => name === 'duplicate_identity')
  for (const who of ['claimant', 'holder'] as const) assert.match(evidence[who], /127\.0\.0\.1, instance \S{8}, agent /)
  assert.notEqual(evidence.claimant, evidence.holder)
  assert.match(evidence.claimant_hardware, claimant)
  assert.match(evidence.holder_hardware, holder)
}

const theOriginal = /BMC serial ORIGINAL/
const theCopy = /BMC serial COPY/

/** Nobody was connected to be named: who was last seen is. */
const checkFenced = async (machine: Machine, claimant: RegExp, holder: RegExp): Promise<void> => {
  const { conditions, sessions } = await nodeOf(machine)
  const { evidence } = conditions.find(({ name }: Json) => name === 'duplicate_identity')
  assert.match(evidence.claimant, /127\.0\.0\.1, instance \S{8}, agent /)
  assert.match(evidence.claimant_hardware, claimant)
  assert.match(evidence.holder, /127\.0\.0\.1, instance \S{8}, agent .*not connected/)
  assert.match(evidence.holder_hardware, holder)
  assert.deepEqual(sessions, [])
  const fences = await journalEntries(plane(), { node: machine.id, type: 'node.quarantined' })
  assert.deepEqual(
    fences.map(({ actor }) => actor),
    ['system:lineage'],
  )
}

const alertsOf = async ({ id }: Machine): Promise<readonly Json[]> => {
  const { alerts } = JSON.parse(await muster('alert', 'list', '-o', 'json')) as Json
  return alerts.filter(({ node, kind }: Json) => node === id && kind === 'duplicate_identity')
}
const isOpen = ({ state }: Json): boolean => state === 'open'

/** Whoever looks after the nodes is told who the two are, and what to do. */
const checkTold = async (machine: Machine): Promise<void> => {
  const story = await muster('node', 'explain', machine.id)
  assert.match(story, /duplicate_identity/)
  for (const one of [theCopy, theOriginal]) assert.match(story, one)
  for (const command of ['repair-bundle', 'settle', 'quarantine']) assert.match(story, new RegExp(`node ${command} `))
  const found = async (): Promise<readonly Json[] | null> => {
    const alerts = await alertsOf(machine)
    return alerts.length === 0 ? null : alerts
  }
  const [alert] = await eventually('an alert', found, patient)
  assert.equal(alert.severity, 'critical')
  assert.match(alert.reason, /127\.0\.0\.1, instance \S{8}.*; and 127\.0\.0\.1, instance \S{8}/)
  for (const one of [theCopy, theOriginal]) assert.match(alert.reason, one)
}

/** The certificate before the one in use serves no longer. */
const drained = (machine: Machine): Promise<true> =>
  eventually(
    `what ${machine.id} had before to have served`,
    () => Date.now() > keptIdentity(machine.state).current.issuedAtMs + 2 * drainMs,
    patient,
  )

/** One channel, and it is of this machine; nobody else is suspected. */
const checkAlone = async ({ machine, agent }: Held): Promise<void> => {
  await untilBack(machine, agent)
  assert.ok(!(await conditionsOf(machine)).includes('duplicate_identity'))
}

/** What somebody could do with all that the loser has: every certificate, the recovery key, the bearer token. */
const tryEverything = async (loser: Machine, winner: Machine): Promise<readonly string[]> => {
  const had = keptIdentity(loser.state)
  const target = await plane().target()
  const evidence = rawEvidence('whoever-has-the-loser')
  const codes: string[] = []
  const refused = (what: string, { status, body }: { status: number; body: Json }): void => {
    assert.ok(status >= 400 && status < 500, `${loser.id}: ${what} was answered ${status} ${JSON.stringify(body)}`)
    codes.push(`${what}: ${body.code}`)
  }
  for (const certificate of [had.current, had.previous]) {
    if (certificate === null) continue
    const confirm = `/v1/nodes/${had.nodeId}/confirm`
    refused('certificate', await nodeCall(target, certificate, 'POST', confirm, {}, evidence))
    const renew = {
      csr: makeCsr(generateKey('p256'), 'node'),
      ...(had.counter === null ? {} : { counter: had.counter }),
    }
    refused('renewal', await nodeCall(target, certificate, 'POST', `/v1/nodes/${had.nodeId}/renew`, renew, evidence))
    const channel = await openRawChannel(target, certificate, had.nodeId, { evidence })
    assert.ok('status' in channel, `${loser.id}: a channel was opened with what the loser has`)
    refused('channel', channel)
  }
  // Its own counter, and the one it would like to have.
  for (const counter of [had.counter, keptIdentity(winner.state).counter]) {
    refused('recovery', await recoverWith(had, counter, evidence))
  }
  return codes
}

const recoverWith = async (had: Identity, counter: string | null, evidence: ReturnType<typeof rawEvidence>) => {
  const { trust, credential } = had.recovery ?? assert.fail('it has registered nothing')
  const target = { url: plane().recoveryUrl, roots: trust.roots }
  const csr = makeCsr(generateKey('p256'), 'node')
  const challenge = await askChallenge(target, had.nodeId)
  if (credential.kind === 'none') return assert.fail('it has nothing to recover with')
  const about = { node: had.nodeId, challenge, csrPem: csr, counter }
  return nodeCall(target, null, 'POST', '/v1/recover', {
    node_id: had.nodeId,
    credential: credential.kind === 'key' ? keyCredential(credential, about) : credential,
    ...(counter === null ? {} : { counter }),
    ...{ csr, evidence, correlation: 'what-the-loser-has' },
    failure: { class: 'cert_expired', code: 'X', since: new Date().toISOString(), cert_not_after: null },
  })
}

/**
 * The end of the matter: one works and goes on renewing, the other does not get in with anything it has, though its agent
 * tries what it can, and does no harm. How it was refused.
 */
const checkSettled = async (
  winner: Held,
  loser: { readonly machine: Machine; readonly agent: Agent | null },
): Promise<string> => {
  await checkAlone(winner)
  const codes = await tryEverything(loser.machine, winner.machine)
  const agent = loser.agent?.running() === true ? loser.agent : loser.machine.start()
  const over = new AbortController()
  void nudgedUntil(over.signal, loser.machine, agent, 'always')
  await untilTold(loser.machine, agent, 'RECOVERY_UNKNOWN')
  await renewedOnce(winner.machine, winner.agent)
  over.abort()
  assert.equal(readStatusFile(loser.machine.state)?.channel.open, false, 'the loser has a channel')
  await agent.stop()
  await checkAlone(winner)
  return [...new Set(codes)].join(', ')
}

/** `muster node repair-bundle`, carried to the machine, evidence awaited, `muster node release`. */
const repaired = async (t: Scope, machine: Machine, agent: Agent): Promise<void> => {
  const { id, state } = machine
  const file = path.join(tempFolder(t), 'bundle')
  await muster('node', 'repair-bundle', id, '--reason', 'its state was copied', '--out', file)
  await muster('agent', 'repair', '--state', state, '--bundle-file', file)
  await eventually(
    `the evidence of ${id}`,
    async () => (await nodeOf(machine)).repair?.evidence?.passed === true,
    patient,
  ).catch((error: unknown) => {
    throw new Error(agent.stdout() + agent.stderr(), { cause: error })
  })
  await muster('node', 'release', id)
}

/** `muster node release`, and a token brought to the machine; nudged, since it asks slowly what only people can change. */
const releasedByToken = async (machine: Machine, agent: Agent): Promise<void> => {
  await muster('node', 'release', machine.id)
  await invite(machine)
  const over = new AbortController()
  void nudgedUntil(over.signal, machine, agent, 'always')
  await untilBack(machine, agent).finally(() => over.abort())
}

describe('a copied state folder', { concurrency: 4 }, () => {
  /** Running, with a certificate in use. */
  const original = async (t: Scope, id: string, profile: string, recovery: Recovery): Promise<Held> => {
    const machine = await newMachine(t, plane(), { id, profile, recovery })
    const agent = machine.start()
    await untilBack(machine, agent)
    return { machine, agent }
  }
  const both = (id: string, recovery: Recovery): string => `${id}-${recovery}`

  for (const recovery of ['key', 'bearer'] as const) {
    test(`started second (${recovery}): it is refused, the original stays and goes on; a repair bundle ends it`, async (t) => {
      const { machine, agent } = await original(t, both('second', recovery), 'lasting', recovery)
      const copy = copyOf(t, machine)
      const copied = copy.start()
      const since = performance.now()
      await untilTold(copy, copied, 'DUPLICATE_IDENTITY')
      const toldMs = performance.now() - since
      await checkBothNamed(machine, theCopy, theOriginal)
      await renewedOnce(machine, agent)
      const { epoch, membership, scheduling } = await nodeOf(machine)
      assert.deepEqual([epoch, membership], [1, 'active'])
      assert.ok(scheduling.reasons.includes('duplicate_identity'))
      await checkTold(machine)

      await repaired(t, machine, agent)
      const codes = await checkSettled({ machine, agent }, { machine: copy, agent: copied })
      t.diagnostic(`the copy was told after ${(toldMs / 1000).toFixed(1)} s of its start; afterwards ${codes}`)
    })

    test(`started while the original is off, and gone again (${recovery}): both are fenced, one is let in`, async (t) => {
      const { machine, agent } = await original(t, both('gone', recovery), 'lasting', recovery)
      const copy = copyOf(t, machine)
      await agent.stop()
      const copied = copy.start()
      await untilBack(copy, copied)
      await renewedOnce(copy, copied)
      await copied.stop()
      await drained(copy)
      const again = machine.start()
      await untilTold(machine, again, 'DUPLICATE_IDENTITY')
      await untilMembership(machine, 'quarantined')
      await checkFenced(machine, theOriginal, theCopy)
      const back = copy.start()
      await untilTold(copy, back, 'NODE_QUARANTINED')

      await releasedByToken(machine, again)
      const codes = await checkSettled({ machine, agent: again }, { machine: copy, agent: back })
      t.diagnostic(`afterwards ${codes}`)
    })
  }

  test('recovering with an older counter while nobody is connected: both are fenced, one is repaired', async (t) => {
    const { machine, agent } = await original(t, 'older', 'brief', 'key')
    const copy = copyOf(t, machine)
    await renewedOnce(machine, agent)
    await agent.stop()
    await untilExpired(machine)
    const copied = copy.start()
    await untilTold(copy, copied, 'DUPLICATE_IDENTITY')
    await untilMembership(machine, 'quarantined')
    await checkFenced(machine, theCopy, theOriginal)
    const again = machine.start()
    await untilTold(machine, again, 'RECOVERY_UNKNOWN')

    await repaired(t, machine, again)
    const codes = await checkSettled({ machine, agent: again }, { machine: copy, agent: copied })
    t.diagnostic(`afterwards ${codes}`)
  })

  test('recovering with a bearer token that was rotated: it is nobody, and the original recovers by itself', async (t) => {
    const { machine, agent } = await original(t, 'rotated', 'brief', 'bearer')
    const copy = copyOf(t, machine)
    await renewedOnce(machine, agent)
    await agent.stop()
    await untilExpired(machine)
    const copied = copy.start()
    await untilTold(copy, copied, 'RECOVERY_UNKNOWN')
    const again = machine.start()
    await untilBack(machine, again)
    assert.deepEqual(await conditionsOf(machine), [])
    const codes = await checkSettled({ machine, agent: again }, { machine: copy, agent: copied })
    t.diagnostic(`afterwards ${codes}`)
  })

  test('recovering with an older counter while the original is connected: it is refused; the machine is installed anew', async (t) => {
    const { machine, agent } = await original(t, 'expired-copy', 'brief', 'key')
    const copy = copyOf(t, machine)
    await renewedOnce(machine, agent)
    await untilExpired(copy)
    const copied = copy.start()
    await untilTold(copy, copied, 'DUPLICATE_IDENTITY')
    const { conditions, epoch } = await nodeOf(machine)
    assert.match(conditions[0].reason, /counter/)
    assert.equal(epoch, 1)
    await checkBothNamed(machine, theCopy, theOriginal)
    await renewedOnce(machine, agent)

    await agent.stop()
    const anew = reinstalled(t, machine)
    await invite(anew, { replace: true })
    const fresh = anew.start()
    await untilBack(anew, fresh)
    const winner = { machine: anew, agent: fresh }
    const codes = [
      await checkSettled(winner, { machine: copy, agent: copied }),
      await checkSettled(winner, { machine, agent: null }),
    ]
    t.diagnostic(`afterwards ${codes.join('; ')}`)
  })

  test('started second, and ended: an operator says that it is settled, and is told again should it come again', async (t) => {
    const { machine, agent } = await original(t, 'settled', 'lasting', 'bearer')
    const copy = copyOf(t, machine)
    const copied = copy.start()
    await untilTold(copy, copied, 'DUPLICATE_IDENTITY')
    await copied.stop()
    await muster('node', 'settle', machine.id, '--reason', 'the copy was wiped')
    await checkAlone({ machine, agent })
    await renewedOnce(machine, agent)
    await eventually('the alert to be over', async () => !(await alertsOf(machine)).some(isOpen), patient)
    await drained(machine)

    // What two held is left to neither of them to recover with.
    const codes = await tryEverything(copy, machine)
    assert.ok(
      codes.every((code) => /DUPLICATE_IDENTITY|RECOVERY_UNKNOWN/.test(code)),
      codes.join(),
    )
    assert.ok((await conditionsOf(machine)).includes('duplicate_identity'))
    await eventually('an alert once more', async () => (await alertsOf(machine)).some(isOpen), patient)
    await renewedOnce(machine, agent)
    assert.equal((await nodeOf(machine)).epoch, 1)
    t.diagnostic(`afterwards ${[...new Set(codes)].join(', ')}`)
  })

  test('started while the original is off: it stays while it is connected, until a bundle is brought to the original', async (t) => {
    const { machine, agent } = await original(t, 'off', 'lasting', 'bearer')
    const copy = copyOf(t, machine)
    await agent.stop()
    const copied = copy.start()
    await untilBack(copy, copied)
    const again = machine.start()
    await untilTold(machine, again, 'DUPLICATE_IDENTITY')
    await checkBothNamed(machine, theOriginal, theCopy)
    await renewedOnce(copy, copied)

    await repaired(t, machine, again)
    const codes = await checkSettled({ machine, agent: again }, { machine: copy, agent: copied })
    t.diagnostic(`afterwards ${codes}`)
  })

  test('started while the original is off, and renewed: the operator may decide for the copy, too', async (t) => {
    const { machine, agent } = await original(t, 'moved', 'lasting', 'key')
    const copy = copyOf(t, machine)
    await agent.stop()
    const copied = copy.start()
    await untilBack(copy, copied)
    await renewedOnce(copy, copied)
    await drained(copy)
    const again = machine.start()
    await untilTold(machine, again, 'DUPLICATE_IDENTITY')
    await checkBothNamed(machine, theOriginal, theCopy)
    await renewedOnce(copy, copied)
    assert.equal((await nodeOf(copy)).membership, 'active')

    await repaired(t, copy, copied)
    const codes = await checkSettled({ machine: copy, agent: copied }, { machine, agent: again })
    t.diagnostic(`afterwards ${codes}`)
  })

  for (const recovery of ['key', 'bearer'] as const) {
    test(`where the profile fences both (${recovery}): the original is cut off as well, until a bundle is brought to it`, async (t) => {
      const { machine, agent } = await original(t, both('strict', recovery), 'strict', recovery)
      const copy = copyOf(t, machine)
      const copied = copy.start()
      await untilTold(copy, copied, 'DUPLICATE_IDENTITY')
      const { sessions } = await untilMembership(machine, 'quarantined')
      assert.deepEqual(sessions, [])
      await checkBothNamed(machine, theCopy, theOriginal)
      await untilTold(machine, agent, 'NODE_QUARANTINED')

      await repaired(t, machine, agent)
      const codes = await checkSettled({ machine, agent }, { machine: copy, agent: copied })
      t.diagnostic(`afterwards ${codes}`)
    })
  }
})
