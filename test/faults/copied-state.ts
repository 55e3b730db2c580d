// Two machines that hold one identity: what can be seen of them, how an operator decides between them, and what the one that
// lost has left.

import assert from 'node:assert/strict'
import * as path from 'node:path'
import type { Identity } from '#agent/state/credentials.ts'
import { keyCredential } from '#agent/link/prove.ts'
import { readStatusFile } from '#agent/diagnostics/status-file.ts'
import { makeCsr } from '#pki/csr.ts'
import { generateKey } from '#pki/keys.ts'
import type { Scope } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import { keptIdentity } from '../process/kept-credentials.ts'
import { invite, nodeOf, nudgedUntil, untilBack, untilRenewed, type Machine } from '../process/mortal-machine.ts'
import { nodeCall } from '../process/node-call.ts'
import type { Json, Reply } from '../process/operator-call.ts'
import { journalEntries } from '../process/plane-records.ts'
import { openRawChannel } from '../process/raw-channel.ts'
import { askChallenge, rawEvidence } from '../process/raw-recovery.ts'
import type { Agent } from '../process/start-agent.ts'
import type { Plane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'

export const patient = { withinMs: 120_000, everyMs: 200 } as const
/** How long a certificate serves after its successor is in use. */
export const drainMs = 1_000

export const conditionsOf = async (machine: Machine): Promise<readonly string[]> =>
  (await nodeOf(machine)).conditions.map(({ name }: Json) => name)

/** What an operator types. */
export const muster = async ({ plane }: Pick<Machine, 'plane'>, ...args: string[]): Promise<string> => {
  const { code, stdout, stderr } = await plane.muster(...args)
  assert.equal(code, 0, `muster ${args.join(' ')}: ${stderr}`)
  return stdout
}

/** Its agent has been told this, and says so. */
export const untilRefusedWith = (machine: Machine, agent: Agent, code: string): Promise<true> =>
  eventually(
    `${machine.id}: to be told ${code}`,
    () => readStatusFile(machine.state)?.troubles.some((trouble) => trouble.code === code) ?? false,
    patient,
  ).catch((error: unknown) => {
    throw new Error(agent.stdout() + agent.stderr(), { cause: error })
  })

export const untilMembership = (machine: Machine, kind: string): Promise<Json> =>
  eventually(
    `${machine.id} to be ${kind}`,
    async () => {
      const node = await nodeOf(machine)
      return node.membership === kind ? node : null
    },
    patient,
  )

export type Held = { readonly machine: Machine; readonly agent: Agent }

export const renewedOnce = async (machine: Machine, agent: Agent): Promise<void> => {
  await untilRenewed(machine, agent, keptIdentity(machine.state).current.serial)
  await untilBack(machine, agent)
}

/** By what the condition says: addresses, processes and hardware of both. */
export const checkBothNamed = async (machine: Machine, claimant: RegExp, holder: RegExp): Promise<void> => {
  const { conditions } = await nodeOf(machine)
  const { evidence } = conditions.find(({ name }: Json) => name === 'duplicate_identity')
  for (const who of ['claimant', 'holder'] as const) assert.match(evidence[who], /127\.0\.0\.1, instance \S{8}, agent /)
  assert.notEqual(evidence.claimant, evidence.holder)
  assert.match(evidence.claimant_hardware, claimant)
  assert.match(evidence.holder_hardware, holder)
}

export const theOriginal = /BMC serial ORIGINAL/
export const theCopy = /BMC serial COPY/

/** Nobody was connected to be named: who was last seen is. */
export const checkFenced = async (machine: Machine, claimant: RegExp, holder: RegExp): Promise<void> => {
  const { conditions, sessions } = await nodeOf(machine)
  const { evidence } = conditions.find(({ name }: Json) => name === 'duplicate_identity')
  assert.match(evidence.claimant, /127\.0\.0\.1, instance \S{8}, agent /)
  assert.match(evidence.claimant_hardware, claimant)
  assert.match(evidence.holder, /127\.0\.0\.1, instance \S{8}, agent .*not connected/)
  assert.match(evidence.holder_hardware, holder)
  assert.deepEqual(sessions, [])
  const fences = await journalEntries(machine.plane, { node: machine.id, type: 'node.quarantined' })
  assert.deepEqual(
    fences.map(({ actor }) => actor),
    ['system:lineage'],
  )
}

export const alertsOf = async (machine: Machine): Promise<readonly Json[]> => {
  const { alerts }: Json = JSON.parse(await muster(machine, 'alert', 'list', '-o', 'json'))
  return alerts.filter(({ node, kind }: Json) => node === machine.id && kind === 'duplicate_identity')
}
export const isOpen = ({ state }: Json): boolean => state === 'open'

/** The operator learns which two machines they are, and what to do. */
export const checkTold = async (machine: Machine): Promise<void> => {
  const story = await muster(machine, 'node', 'explain', machine.id)
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
export const drained = (machine: Machine): Promise<true> =>
  eventually(
    `what ${machine.id} had before to have served`,
    () => Date.now() > keptIdentity(machine.state).current.issuedAtMs + 2 * drainMs,
    patient,
  )

/** One channel, and it is of this machine; nobody else is suspected. */
export const checkAlone = async ({ machine, agent }: Held): Promise<void> => {
  await untilBack(machine, agent)
  assert.ok(!(await conditionsOf(machine)).includes('duplicate_identity'))
}

/** What an attacker could do with all that the loser has: every certificate, the recovery key, the bearer token. */
export const tryEverything = async (loser: Machine, winner: Machine): Promise<readonly string[]> => {
  const had = keptIdentity(loser.state)
  const target = await loser.plane.target()
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
    refused('recovery', await recoverWith(loser.plane, had, counter, evidence))
  }
  return codes
}

const recoverWith = async (
  plane: Plane,
  had: Identity,
  counter: string | null,
  evidence: ReturnType<typeof rawEvidence>,
): Promise<Reply> => {
  const { trust, credential } = had.recovery ?? assert.fail('it has registered nothing')
  const target = { url: plane.recoveryUrl, roots: trust.roots }
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
export const checkSettled = async (
  winner: Held,
  loser: { readonly machine: Machine; readonly agent: Agent | null },
): Promise<string> => {
  await checkAlone(winner)
  const codes = await tryEverything(loser.machine, winner.machine)
  const agent = loser.agent?.running() === true ? loser.agent : loser.machine.start()
  const over = new AbortController()
  void nudgedUntil(over.signal, loser.machine, agent, 'always')
  await untilRefusedWith(loser.machine, agent, 'RECOVERY_UNKNOWN')
  await renewedOnce(winner.machine, winner.agent)
  over.abort()
  assert.equal(readStatusFile(loser.machine.state)?.channel.open, false, 'the loser has a channel')
  await agent.stop()
  await checkAlone(winner)
  return [...new Set(codes)].join(', ')
}

/** `muster node repair-bundle`, carried to the machine, evidence awaited, `muster node release`. */
export const repaired = async (t: Scope, machine: Machine, agent: Agent): Promise<void> => {
  const { id, state } = machine
  const file = path.join(tempFolder(t), 'bundle')
  await muster(machine, 'node', 'repair-bundle', id, '--reason', 'its state was copied', '--out', file)
  await muster(machine, 'agent', 'repair', '--state', state, '--bundle-file', file)
  await eventually(
    `the evidence of ${id}`,
    async () => (await nodeOf(machine)).repair?.evidence?.passed === true,
    patient,
  ).catch((error: unknown) => {
    throw new Error(agent.stdout() + agent.stderr(), { cause: error })
  })
  await muster(machine, 'node', 'release', id)
}

/** `muster node release`, and a token brought to the machine; nudged, since it asks slowly what only people can change. */
export const releasedByToken = async (machine: Machine, agent: Agent): Promise<void> => {
  await muster(machine, 'node', 'release', machine.id)
  await invite(machine)
  const over = new AbortController()
  void nudgedUntil(over.signal, machine, agent, 'always')
  await untilBack(machine, agent).finally(() => over.abort())
}
