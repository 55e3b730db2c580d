// Seed 003, failure matrix: "node identity revoked", and the quarantine beside it. The plane has said no, and the agent
// does not get around that: neither by its certificate nor by what it recovers with.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { agentExitCodes } from '#agent/core/outcome.ts'
import { joinMember, untilConnected, type Member } from '../process/agent-member.ts'
import { eventually } from '../process/eventually.ts'
import type { Json } from '../process/operator-call.ts'
import { runMuster } from '../process/run-muster.ts'
import { shared } from '../process/shared-plane.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { stoppedUntilExpired } from '../system/agent-recovery-setup.ts'
import { nodeOf } from './ask-plane.ts'
import {
  again,
  agentExplains,
  entriesOf,
  issuedTo,
  liveFor,
  makeLongLived,
  planeExplains,
  recoveryStory,
  troubleAt,
  untilBack,
  untilItSays,
  untilItSaysNothingOf,
} from './failure-story.ts'

const domain = shared(async (scope) => {
  const plane = await startPlane(scope)
  await makeLongLived(plane, 'gone')
  return plane
})

/** Ended by itself, with the exit code after which systemd leaves it alone, and says what a person can do. */
const gaveUp = async (member: Member): Promise<Json> => {
  assert.deepEqual(await member.ended, { code: agentExitCodes.revoked, signal: null }, member.stderr().slice(-2000))
  const { outcome } = member.says() ?? assert.fail('it said nothing')
  assert.deepEqual([outcome?.kind, outcome?.code], ['revoked', 'NODE_REVOKED'])
  assert.match(outcome?.next ?? '', /muster node/)
  return outcome
}

/** everything it asked for since was refused, in the journal, and was not much. */
const onlyRefused = async (plane: Plane, id: string, most: number): Promise<readonly Json[]> => {
  const refusals = await eventually('the refusals to be in the journal', async () => {
    const found = await entriesOf(plane, id, 'refused')
    return found.length > 0 ? found : null
  })
  const codes = refusals.map(({ body }) => body.code)
  assert.ok(refusals.length <= most, codes.join())
  for (const code of codes) assert.match(code, /^(NODE_REVOKED|CLIENT_CERT_DENIED|NODE_QUARANTINED)$/)
  assert.deepEqual(await issuedTo(plane, id), { renewals: 0, recoveries: 0 })
  return codes
}

describe('an identity that the plane has withdrawn', { concurrency: true }, () => {
  test('node identity revoked: fails closed while online, and again at every start; no self-recovery', async (t) => {
    const plane = domain()
    const member = await joinMember(t, plane, { id: 'revoked-1', profile: 'gpu-cloud' })
    await untilConnected([member])
    const revoked = await plane.muster('node', 'revoke', 'revoked-1', '--reason', 'stolen')
    assert.equal(revoked.code, 0, revoked.stderr)
    await gaveUp(member)
    const first = await onlyRefused(plane, 'revoked-1', 6)

    const restarted = again(member)
    await gaveUp(restarted)
    const both = await onlyRefused(plane, 'revoked-1', 12)
    const explained = await agentExplains(restarted)
    assert.match(explained.wrong.join('\n'), /NODE_REVOKED/)
    assert.ok(explained.advice.length > 0)
    const code = await runMuster(['explain', explained.code])
    assert.match(code.stdout, /identity_revoked_or_fenced/)
    assert.match(await planeExplains(plane, 'revoked-1'), /Revoked .*stolen/)
    assert.equal((await nodeOf(plane, 'revoked-1')).membership, 'revoked')
    t.diagnostic(`refused online: ${first.join(' ')}; with the restart: ${both.join(' ')}`)
  })

  test('node identity revoked while its certificate was over: what it recovers with is refused, too', async (t) => {
    const plane = domain()
    const args = [['--recovery', 'key'] as const, ['--recovery', 'bearer'] as const]
    const members = await Promise.all(
      args.map(([option, way]) => joinMember(t, plane, { id: `gone-${way}`, profile: 'gone', args: [option, way] })),
    )
    await untilConnected(members)
    await liveFor(plane, 'gone', 4_000, ...members)
    await Promise.all(members.map((member) => stoppedUntilExpired(member)))
    for (const member of members) {
      const revoked = await plane.muster('node', 'revoke', member.id, '--reason', 'stolen')
      assert.equal(revoked.code, 0, revoked.stderr)
      const { epoch } = await nodeOf(plane, member.id)
      const restarted = again(member)
      const { class: failure } = await gaveUp(restarted)
      assert.equal(failure, 'identity_revoked_or_fenced')
      const codes = await refusedSince(plane, member.id)
      assert.ok(codes.length >= 1 && codes.length <= 3, codes.join())
      assert.equal((await nodeOf(plane, member.id)).epoch, epoch)
      assert.deepEqual(await entriesOf(plane, member.id, 'node.recovery_requested', 'node.recovered'), [])
    }
  })

  test('node identity fenced by quarantine: it waits, does not recover, and is back when an operator says so', async (t) => {
    const plane = domain()
    const member = await joinMember(t, plane, { id: 'fenced-1', profile: 'gpu-cloud' })
    await untilConnected([member])
    const fenced = await plane.muster('node', 'quarantine', 'fenced-1', '--reason', 'it behaves oddly')
    assert.equal(fenced.code, 0, fenced.stderr)
    const said = await untilItSays(member, 'channel', 'identity_revoked_or_fenced')
    assert.equal(said.code, 'NODE_QUARANTINED')
    assert.match(said.next, /muster node release fenced-1/)
    assert.ok(Date.parse(said.next_try_at ?? '') - Date.now() > 5_000, 'it is in no hurry')
    // Pushed, it asks again, and is refused again.
    for (let push = 0; push < 3; push++) {
      const { attempts } = await untilItSays(member, 'channel', 'identity_revoked_or_fenced')
      member.signal('SIGUSR2')
      await eventually('it to ask once more', () => (troubleAt(member, 'channel')?.attempts ?? 0) > attempts)
    }
    const codes = await onlyRefused(plane, 'fenced-1', 12)
    assert.equal(member.running(), true)
    assert.equal((await nodeOf(plane, 'fenced-1')).membership, 'quarantined')
    assert.match((await agentExplains(member)).wrong.join('\n'), /identity_revoked_or_fenced: NODE_QUARANTINED/)

    assert.equal((await plane.muster('node', 'release', 'fenced-1')).code, 0)
    const nudged = await runMuster(['agent', 'renew', '--now', '--state', member.state])
    assert.ok([0, 1].includes(nudged.code), nudged.stderr)
    await untilBack(plane, member, 2)
    await untilItSaysNothingOf(member, 'channel')
    const story = await recoveryStory(plane, member)
    const requested = story.find(({ type }) => type === 'node.recovery_requested')
    assert.equal(requested.body.failure_class, 'identity_revoked_or_fenced')
    t.diagnostic(`refused: ${codes.join(' ')}; then released and recovered into epoch 2`)
  })
})

const refusedSince = (plane: Plane, id: string): Promise<string[]> =>
  eventually('its refusal to be in the journal', async () => {
    const codes = (await entriesOf(plane, id, 'refused')).map(({ body }) => body.code)
    return codes.includes('NODE_REVOKED') ? codes : null
  })
