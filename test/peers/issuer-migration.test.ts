// Real agents go from the authority of the domain to a real step-ca, and from there to a real Vault, while they renew all the time.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { startPlanesBehindOne } from '../cluster/three-planes.ts'
import { activeNode } from '../process/active-node.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { addStepCa, addVault, passTest } from './added-issuers.ts'
import {
  briefProfile,
  isUndisturbed,
  joinFleet,
  makeBriefProfile,
  retiresOld,
  shareAll,
  survivesOutage,
  undoesAndRepeats,
  type MigratingFleet,
  type NewIssuer,
} from './migrating-fleet.ts'
import { withPeer } from './peer.ts'
import { isPeersRun } from './run-of-peers.ts'
import { startStepCa } from './step-ca.ts'
import { startVault, type VaultPeer } from './vault-server.ts'
import { dataOf, mount } from './vault-set-up.ts'

type Issuers = { readonly stepCa: NewIssuer; readonly vault: NewIssuer }

/** As the plane and the page of step-ca have it, and agents take it: half a minute is much of a lifetime that is scaled, and nothing of a day. */
const backdateByAMinute = async (peer: VaultPeer): Promise<void> => {
  const route = `${mount}/roles/gpu-cloud`
  const role = dataOf((await peer.call('GET', route)).body)
  const { status, body } = await peer.call('POST', route, { ...role, not_before_duration: 60 })
  assert.ok(status < 300, JSON.stringify(body))
}

/** Added and tested, with a profile that may go to either. Null: one of them is not on this machine. */
const startIssuers = async (t: TestContext): Promise<((plane: Plane, lifetime: string) => Promise<Issuers>) | null> => {
  const binaries = [withPeer(t, 'step-ca'), withPeer(t, 'vault')] as const
  if (binaries[0] === null || binaries[1] === null) return null
  const [server, peer] = await Promise.all([startStepCa(t, binaries[0]), startVault(t, binaries[1])])
  return async (plane, lifetime) => {
    await makeBriefProfile(plane, lifetime)
    const [corp, vault] = [await addStepCa(plane, server, 'corp'), await addVault(plane, peer, 'vault')]
    await passTest(plane, corp, briefProfile)
    await passTest(plane, vault, briefProfile, peer)
    await backdateByAMinute(peer)
    return {
      stepCa: { name: corp.name, root: corp.root, stop: server.stop, start: server.start },
      vault: { name: vault.name, root: vault.root, stop: peer.stop, start: peer.start },
    }
  }
}

test('twelve agents go to a step-ca, back, there again and to a Vault that is away in the middle: none loses anything', async (t) => {
  const added = await startIssuers(t)
  if (added === null) return
  const plane = await startPlane(t)
  const { stepCa, vault } = await added(plane, '24s')
  const fleet = await joinFleet(t, [plane], { count: 12, patience: { withinMs: 120_000, everyMs: 500 } })
  await shareAll(fleet, stepCa)
  await undoesAndRepeats(fleet)
  await retiresOld(fleet, stepCa)
  await shareAll(fleet, vault)
  await survivesOutage(fleet, vault)
  await retiresOld(fleet, vault)
  await isUndisturbed(fleet)
})

/** Of a day that lasts six minutes. */
const patience = { withinMs: 900_000, everyMs: 2000 }
const large = 200

const migrateAll = async (fleet: MigratingFleet, { stepCa, vault }: Issuers): Promise<void> => {
  for (const issuer of [stepCa, vault]) {
    await shareAll(fleet, issuer)
    await survivesOutage(fleet, issuer)
    await undoesAndRepeats(fleet)
    await retiresOld(fleet, issuer)
  }
  await isUndisturbed(fleet)
}

const skip = isPeersRun ? false : 'only in the run with peers'

/** The load is to be there all the time, and to leave the fleet a processor. */
const pauseMs = 100

/** Machines of another profile, one after the other in each of so many lanes. */
const startEnrolling = (plane: Plane, lanes: number) => {
  let stopping = false
  let count = 0
  const lane = async (): Promise<void> => {
    for (; !stopping; await new Promise((resolve) => setTimeout(resolve, pauseMs)))
      await activeNode(plane, `load-${count++}`)
  }
  const over = Promise.all(Array.from({ length: lanes }, lane))
  // Reported when it is stopped.
  over.catch(() => {})
  return async (): Promise<number> => {
    stopping = true
    await over
    return count
  }
}

test(`${large} agents go the whole way while other machines enroll`, { skip }, async (t) => {
  const added = await startIssuers(t)
  if (added === null) return
  const plane = await startPlane(t)
  const issuers = await added(plane, '6m')
  const fleet = await joinFleet(t, [plane], { count: large, patience })
  const stopEnrolling = startEnrolling(plane, 2)
  await migrateAll(fleet, issuers)
  t.diagnostic(`${await stopEnrolling()} other machines have enrolled meanwhile`)
})

test(`${large} agents go the whole way at three planes over PostgreSQL`, { skip }, async (t) => {
  const added = await startIssuers(t)
  if (added === null || withPeer(t, 'postgres') === null) return
  const { doors } = await startPlanesBehindOne(t)
  const [first, second, third] = doors
  const issuers = await added(first.plane, '6m')
  const planes = [first.plane, second.plane, third.plane] as const
  await migrateAll(await joinFleet(t, planes, { count: large, patience }), issuers)
})
