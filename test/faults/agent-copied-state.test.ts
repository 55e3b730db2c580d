// Two machines from one state folder: which of them stays, what the other is told, and how an operator ends it. Whatever
// is decided, afterwards one machine works, and what the other has is worth nothing (ruling 6).

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Scope } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import {
  copyOf,
  invite,
  newMachine,
  nodeOf,
  reinstalled,
  untilBack,
  untilExpired,
  type Recovery,
} from '../process/mortal-machine.ts'
import { shared } from '../process/shared-plane.ts'
import { startPlane } from '../process/start-plane.ts'
import {
  alertsOf,
  checkAlone,
  checkBothNamed,
  checkFenced,
  checkSettled,
  checkTold,
  conditionsOf,
  drained,
  drainMs,
  isOpen,
  muster,
  patient,
  releasedByToken,
  renewedOnce,
  repaired,
  theCopy,
  theOriginal,
  tryEverything,
  untilMembership,
  untilRefusedWith,
  type Held,
} from './copied-state.ts'

const plane = shared(async (scope) => {
  const started = await startPlane(scope)
  const make = async (name: string, set: object): Promise<void> => {
    const recovery = { 'recovery.limit': 1000, 'recovery.windowMs': 1000 }
    const made = await started.api('POST', '/v1/profiles', { name, from: 'gpu-cloud', set: { ...recovery, ...set } })
    assert.equal(made.status, 201, JSON.stringify(made.body))
  }
  // All machines of this file call from one address, and copies try everything they have.
  const patience = { strangersPerMinute: 10_000, strangersPerMinutePerSource: 10_000 }
  const limits = await started.api('PATCH', '/v1/domain', { set: { drainMs, ...patience } })
  assert.equal(limits.status, 200, JSON.stringify(limits.body))
  await make('lasting', { 'certificate.lifetimeMs': 120_000 })
  await make('brief', { 'certificate.lifetimeMs': 10_000 })
  await make('strict', { 'certificate.lifetimeMs': 120_000, onDuplicate: 'fence' })
  return started
})

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
      await untilRefusedWith(copy, copied, 'DUPLICATE_IDENTITY')
      const refusedAfterMs = performance.now() - since
      await checkBothNamed(machine, theCopy, theOriginal)
      await renewedOnce(machine, agent)
      const { epoch, membership, scheduling } = await nodeOf(machine)
      assert.deepEqual([epoch, membership], [1, 'active'])
      assert.ok(scheduling.reasons.includes('duplicate_identity'))
      await checkTold(machine)

      await repaired(t, machine, agent)
      const codes = await checkSettled({ machine, agent }, { machine: copy, agent: copied })
      t.diagnostic(`the copy was told after ${(refusedAfterMs / 1000).toFixed(1)} s of its start; afterwards ${codes}`)
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
      await untilRefusedWith(machine, again, 'DUPLICATE_IDENTITY')
      await untilMembership(machine, 'quarantined')
      await checkFenced(machine, theOriginal, theCopy)
      const back = copy.start()
      await untilRefusedWith(copy, back, 'NODE_QUARANTINED')

      await releasedByToken(machine, again)
      const codes = await checkSettled({ machine, agent: again }, { machine: copy, agent: back })
      t.diagnostic(`afterwards ${codes}`)
    })
  }

  test('recovering with an older counter while no machine is connected: both are fenced, one is repaired', async (t) => {
    const { machine, agent } = await original(t, 'older', 'brief', 'key')
    const copy = copyOf(t, machine)
    await renewedOnce(machine, agent)
    await agent.stop()
    await untilExpired(machine)
    const copied = copy.start()
    await untilRefusedWith(copy, copied, 'DUPLICATE_IDENTITY')
    await untilMembership(machine, 'quarantined')
    await checkFenced(machine, theCopy, theOriginal)
    const again = machine.start()
    await untilRefusedWith(machine, again, 'RECOVERY_UNKNOWN')

    await repaired(t, machine, again)
    const codes = await checkSettled({ machine, agent: again }, { machine: copy, agent: copied })
    t.diagnostic(`afterwards ${codes}`)
  })

  test('recovering with a rotated bearer token is refused, and the original recovers without an operator', async (t) => {
    const { machine, agent } = await original(t, 'rotated', 'brief', 'bearer')
    const copy = copyOf(t, machine)
    await renewedOnce(machine, agent)
    await agent.stop()
    await untilExpired(machine)
    const copied = copy.start()
    await untilRefusedWith(copy, copied, 'RECOVERY_UNKNOWN')
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
    await untilRefusedWith(copy, copied, 'DUPLICATE_IDENTITY')
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

  test('started second, and ended: an operator settles it, and a new alert is raised should it come again', async (t) => {
    const { machine, agent } = await original(t, 'settled', 'lasting', 'bearer')
    const copy = copyOf(t, machine)
    const copied = copy.start()
    await untilRefusedWith(copy, copied, 'DUPLICATE_IDENTITY')
    await copied.stop()
    await muster(machine, 'node', 'settle', machine.id, '--reason', 'the copy was wiped')
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
    await untilRefusedWith(machine, again, 'DUPLICATE_IDENTITY')
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
    await untilRefusedWith(machine, again, 'DUPLICATE_IDENTITY')
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
      await untilRefusedWith(copy, copied, 'DUPLICATE_IDENTITY')
      const { sessions } = await untilMembership(machine, 'quarantined')
      assert.deepEqual(sessions, [])
      await checkBothNamed(machine, theCopy, theOriginal)
      await untilRefusedWith(machine, agent, 'NODE_QUARANTINED')

      await repaired(t, machine, agent)
      const codes = await checkSettled({ machine, agent }, { machine: copy, agent: copied })
      t.diagnostic(`afterwards ${codes}`)
    })
  }
})
