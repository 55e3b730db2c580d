// Seed 003, failure matrix: "API hostname missing after reboot". The agent has a hosts file of its own, in a mount
// namespace of its own; the name is taken out of it and put back, and the agent is restarted in between.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { addressesFile } from '#agent/link/known-addresses.ts'
import { withPeer } from '../peers/peer.ts'
import { joinMember, untilConnected, type Member } from '../process/agent-member.ts'
import { eventually } from '../process/eventually.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'
import {
  again,
  agentExplains,
  entriesOf,
  issuedTo,
  liveFor,
  longLifeMs,
  makeLongLived,
  renewNow,
  planeExplains,
  troubleAt,
  untilBack,
  untilCondition,
  untilItSays,
  untilItSaysNothingOf,
  untilNoCondition,
} from './failure-story.ts'

const name = 'plane.muster.test'

type Names = {
  /** Runs a command where only these names exist. */
  readonly wrapper: readonly string[]
  known(): void
  gone(): void
}

/** Written in place: it is this very file that is mounted over /etc/hosts. Only files are asked: no DNS answers late. */
const ownNames = (t: TestContext, unshare: string): Names => {
  const folder = tempFolder(t)
  const [hosts, order] = [path.join(folder, 'hosts'), path.join(folder, 'nsswitch.conf')]
  const local = '127.0.0.1 localhost\n'
  fs.writeFileSync(hosts, `${local}127.0.0.1 ${name}\n`)
  fs.writeFileSync(order, 'hosts: files\n')
  const script = 'mount --bind "$1" /etc/hosts && mount --bind "$2" /etc/nsswitch.conf && shift 2 && exec "$@"'
  return {
    wrapper: [unshare, '--mount', 'sh', '-c', script, 'sh', hosts, order],
    known: () => fs.writeFileSync(hosts, `${local}127.0.0.1 ${name}\n`),
    gone: () => fs.writeFileSync(hosts, local),
  }
}

const start = async (t: TestContext): Promise<{ plane: Plane; names: Names } | null> => {
  const unshare = withPeer(t, 'unshare')
  if (unshare === null || withPeer(t, 'tmpfs') === null) return null
  const plane = await startPlane(t, { args: ['--server-name', name] })
  assert.equal(new URL(plane.nodeUrl).hostname, name)
  await makeLongLived(plane, 'named')
  return { plane, names: ownNames(t, unshare) }
}

const untilRenewed = async (plane: Plane, member: Member, times: number): Promise<void> => {
  const { renewals: before } = await issuedTo(plane, member.id)
  await eventually(`${member.id} to renew`, async () => (await issuedTo(plane, member.id)).renewals >= before + times, {
    withinMs: 45_000,
    everyMs: 200,
  })
}

test('API hostname missing after reboot: endpoint_profile_drift, healed from the last good addresses, over when the name is back', async (t) => {
  const started = await start(t)
  if (started === null) return
  const { plane, names } = started
  const member = await joinMember(t, plane, { id: 'named-1', profile: 'named', wrapper: names.wrapper })
  await untilConnected([member])
  await member.stop()
  names.gone()
  const rebooted = again(member)

  const said = await untilItSays(rebooted, 'endpoints', 'endpoint_profile_drift')
  assert.deepEqual(said.evidence, { name, code: 'ENOTFOUND', address: '127.0.0.1' })
  assert.match(said.next, /\/etc\/hosts/)
  await untilBack(plane, rebooted, 1)
  const condition = await untilCondition(plane, 'named-1', 'endpoint_profile_drift')
  assert.deepEqual(condition.evidence, { name, code: 'ENOTFOUND', address: '127.0.0.1' })
  assert.match(await planeExplains(plane, 'named-1'), /endpoint_profile_drift/)
  assert.match((await agentExplains(rebooted)).wrong.join('\n'), /endpoint_profile_drift/)

  // It lives on without the name: renewals, each over a connection that is verified for that very name.
  await liveFor(plane, 'named', 8_000, rebooted)
  await untilRenewed(plane, rebooted, 2)
  await liveFor(plane, 'named', longLifeMs, rebooted)
  // drift is no failure of credentials. Nothing was recovered, nobody was refused.
  assert.deepEqual(await entriesOf(plane, 'named-1', 'node.recovery_requested', 'node.recovered', 'refused'), [])
  assert.equal(troubleAt(rebooted, 'recovery'), null)

  names.known()
  await renewNow(rebooted)
  await untilItSaysNothingOf(rebooted, 'endpoints')
  await untilNoCondition(plane, 'named-1', 'endpoint_profile_drift')
  const { renewals } = await issuedTo(plane, 'named-1')
  t.diagnostic(`${renewals} renewals in all, most of them without the name; no recovery`)
})

test('API hostname missing after reboot, and nowhere remembered: endpoint_unreachable until the name is back', async (t) => {
  const started = await start(t)
  if (started === null) return
  const { plane, names } = started
  const member = await joinMember(t, plane, { id: 'named-2', profile: 'named', wrapper: names.wrapper })
  await untilConnected([member])
  await member.stop()
  fs.rmSync(addressesFile(member.state))
  names.gone()
  const rebooted = again(member)

  const said = await untilItSays(rebooted, 'channel', 'endpoint_unreachable')
  assert.equal(said.evidence?.['code'], 'ENOTFOUND')
  assert.match((await agentExplains(rebooted)).wrong.join('\n'), /endpoint_unreachable/)
  names.known()
  await untilBack(plane, rebooted, 1)
  await untilItSaysNothingOf(rebooted, 'channel')
  assert.deepEqual(await entriesOf(plane, 'named-2', 'node.renewed', 'node.recovery_requested', 'refused'), [])
})
