// Seed 003, failure matrix: "disk full", and the read-only file system beside it. A real file system of a few megabytes
// under the state folder, really filled and really remounted.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import * as path from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import type { CertificateRow } from '#domain/core/certificate.ts'
import { withPeer } from '../peers/peer.ts'
import { joinMember, untilConnected, type Member } from '../process/agent-member.ts'
import { cleanup } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import type { Json } from '../process/operator-call.ts'
import { storedCertificates } from '../process/plane-records.ts'
import { shared } from '../process/shared-plane.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { mountTmpfs, type Tmpfs } from '../process/tmpfs.ts'
import { identityOf } from '../system/agent-recovery-setup.ts'
import { nodeOf } from './ask-plane.ts'
import {
  again,
  agentExplains,
  entriesOf,
  issuedTo,
  liveFor,
  longLifeMs,
  makeLongLived,
  planeExplains,
  renewNow,
  untilBack,
  untilCondition,
  untilItSays,
  untilItSaysNothingOf,
  untilNoCondition,
} from './failure-story.ts'

/** The last quarter, in which it is renewed in memory, should be longer than any hiccup of this machine. */
const briefMs = 16_000

const domain = shared(async (scope) => {
  const plane = await startPlane(scope)
  await makeLongLived(plane, 'full')
  await makeLongLived(plane, 'read-only')
  return plane
})

/** Of a profile of its own, on a disk of its own. */
const onOwnDisk = async (t: TestContext, profile: string): Promise<{ disk: Tmpfs; member: Member }> => {
  const disk = mountTmpfs(t, tempFolder(t), 4 * 1024 * 1024)
  const state = path.join(disk.folder, 'state')
  const args = ['--report-every', '500ms']
  const member = await joinMember(t, domain(), { id: `${profile}-1`, profile, state, args })
  await untilConnected([member])
  return { disk, member }
}

/** By a mount over it: while an agent has its lock there, only the kernel can remount the file system itself. */
const makeReadOnly = (t: TestContext, { folder }: Tmpfs): (() => void) => {
  const mount = (...args: string[]): void => void execFileSync('mount', [...args, folder])
  mount('--bind', folder)
  let isOver = false
  const undo = (): void => {
    if (!isOver) execFileSync('umount', [folder])
    isOver = true
  }
  cleanup(t, undo)
  mount('-o', 'remount,bind,ro')
  return undo
}

const currentSerial = async (plane: Plane, id: string): Promise<string> =>
  (await nodeOf(plane, id)).certificates.find(({ slot }: Json) => slot === 'current').serial

/** What is in the file is what the plane has: a restart would go on with it. */
const untilKept = (plane: Plane, member: Member): Promise<true> =>
  eventually(
    `the certificate in use of ${member.id} to be on its disk`,
    async () => identityOf(member).current.serial === (await currentSerial(plane, member.id)),
    { withinMs: 30_000, everyMs: 100 },
  )

/** excluded from scheduling for what it is, and never "unreachable". */
const assertExcludedFor = async (plane: Plane, id: string, reason: string): Promise<void> => {
  const { scheduling, evidence, channel_open, membership } = await nodeOf(plane, id)
  assert.deepEqual([channel_open, membership, scheduling.state], [true, 'active', 'unavailable'])
  assert.ok(scheduling.reasons.includes(reason), JSON.stringify(scheduling))
  assert.ok(evidence.excluded_from_scheduling.reasons.includes(reason))
  assert.doesNotMatch(JSON.stringify(scheduling), /unreachable/)
}

const nothingInsecure = async (plane: Plane, id: string): Promise<void> => {
  assert.deepEqual(await entriesOf(plane, id, 'refused', 'node.recovery_requested', 'node.recovered'), [])
  assert.equal((await nodeOf(plane, id)).epoch, 1)
}

describe('disk trouble', { concurrency: true }, () => {
  test('disk full: disk_full and not unreachable; the reserve keeps its renewals on disk, across a restart, and room heals it', async (t) => {
    if (withPeer(t, 'tmpfs') === null) return
    const plane = domain()
    const { disk, member } = await onOwnDisk(t, 'full')
    disk.fill(0)
    const said = await untilItSays(member, 'storage', 'disk_full')
    assert.equal(said.evidence?.['errno'], 'ENOSPC')
    assert.match(said.next, /Make room/)
    const condition = await untilCondition(plane, 'full-1', 'disk_full')
    assert.equal(condition.evidence.errno, 'ENOSPC')
    assert.equal(condition.evidence.path, member.state)
    const pressure = await untilCondition(plane, 'full-1', 'node_observability_disk_pressure')
    assert.ok(pressure.evidence.free_bytes < 64 * 1024)
    await assertExcludedFor(plane, 'full-1', 'disk_full')
    await assertExcludedFor(plane, 'full-1', 'node_observability_disk_pressure')
    assert.match(await planeExplains(plane, 'full-1'), /disk_full/)
    assert.match((await agentExplains(member)).wrong.join('\n'), /disk_full/)

    for (let renewal = 0; renewal < 3; renewal++) {
      await renewNow(member)
      await untilKept(plane, member)
    }
    // A restart in the middle of it: what it starts with is what it renewed to on the full disk.
    await member.stop()
    const restarted = again(member)
    await untilBack(plane, restarted, 1)
    await untilItSays(restarted, 'storage', 'disk_full')
    await renewNow(restarted)
    await untilKept(plane, restarted)
    const conditions = (await nodeOf(plane, 'full-1')).conditions.map(({ name }: Json) => name)
    assert.ok(!conditions.includes('not_persisted'), conditions.join())
    assert.deepEqual(await conditionsRaised(plane, 'full-1', 'not_persisted'), [])

    disk.free()
    await untilNoCondition(plane, 'full-1', 'disk_full', 'node_observability_disk_pressure')
    await untilItSaysNothingOf(restarted, 'storage')
    const { evidence } = await nodeOf(plane, 'full-1')
    assert.deepEqual([evidence.disk_reserve, evidence.identity_writable], [true, true])
    await nothingInsecure(plane, 'full-1')
    const { renewals } = await issuedTo(plane, 'full-1')
    t.diagnostic(`${renewals} renewals in the reserve, the last after a restart on the full disk`)
  })

  test('read-only file system: disk_full with EROFS; it goes on and renews in memory, and heals when it can write again', async (t) => {
    if (withPeer(t, 'tmpfs') === null) return
    const plane = domain()
    const { disk, member } = await onOwnDisk(t, 'read-only')
    await liveFor(plane, 'read-only', briefMs, member)
    await untilKept(plane, member)
    const { serial: onDisk } = identityOf(member).current
    const undo = makeReadOnly(t, disk)
    const condition = await untilCondition(plane, 'read-only-1', 'disk_full')
    assert.equal(condition.evidence.errno, 'EROFS')
    await assertExcludedFor(plane, 'read-only-1', 'disk_full')
    const { evidence } = await nodeOf(plane, 'read-only-1')
    assert.equal(evidence.identity_writable, false)
    assert.match(await planeExplains(plane, 'read-only-1'), /read-only/)
    const explained = await agentExplains(member)
    assert.match(explained.wrong.join('\n'), /disk_full at storage.* is read-only/)
    assert.match(explained.advice.join('\n'), /remount,rw/)

    // A request that a crash may lose is sent only when the certificate would be lost otherwise.
    await eventually('a renewal in memory', () => successorOf(plane, 'read-only-1', onDisk), { withinMs: 45_000 })
    const partOfLife = await partLivedBeforeRenewal(plane, 'read-only-1', onDisk)
    assert.ok(partOfLife > 0.7, `renewed after ${partOfLife} of its life`)
    assert.equal(identityOf(member).current.serial, onDisk, 'nothing was written')
    await untilCondition(plane, 'read-only-1', 'not_persisted')
    assert.equal((await nodeOf(plane, 'read-only-1')).channel_open, true)

    undo()
    await untilNoCondition(plane, 'read-only-1', 'disk_full', 'not_persisted')
    await untilItSaysNothingOf(member, 'storage')
    await liveFor(plane, 'read-only', longLifeMs, member)
    await untilKept(plane, member)

    // A machine that comes up with its disk read-only, as they do after errors: it starts from what is there.
    await member.stop()
    execFileSync('mount', ['-o', 'remount,ro', disk.folder])
    const restarted = again(member)
    assert.equal((await untilCondition(plane, 'read-only-1', 'disk_full')).evidence.errno, 'EROFS')
    assert.equal((await nodeOf(plane, 'read-only-1')).channel_open, true)
    execFileSync('mount', ['-o', 'remount,rw', disk.folder])
    await untilNoCondition(plane, 'read-only-1', 'disk_full')
    await renewNow(restarted)
    await untilKept(plane, restarted)
    await nothingInsecure(plane, 'read-only-1')
    t.diagnostic(`a renewal in memory, after ${partOfLife.toFixed(2)} of the life of the one before`)
  })
})

const successorOf = async (plane: Plane, id: string, serial: string): Promise<CertificateRow | undefined> =>
  (await storedCertificates(plane, id)).find(({ renews }) => renews === serial)

/** Of this certificate, when its successor was issued. */
const partLivedBeforeRenewal = async (plane: Plane, id: string, serial: string): Promise<number> => {
  const first = (await storedCertificates(plane, id)).find((one) => one.serial === serial)
  const next = await successorOf(plane, id, serial)
  assert.ok(first !== undefined && next !== undefined)
  return (next.issuedAtMs - first.issuedAtMs) / (first.notAfterMs - first.issuedAtMs)
}

const conditionsRaised = async (plane: Plane, id: string, name: string): Promise<readonly Json[]> =>
  (await entriesOf(plane, id, 'node.condition_raised')).filter(({ body }) => body.condition === name)
