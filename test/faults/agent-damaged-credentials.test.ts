// L6: damage to the credentials on an agent's disk is called damage, and heals by recovery within seconds where the recovery
// key is whole. Before, a damaged key failed inside TLS and was reported as a network that does not answer, without end.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { describe, test } from 'node:test'
import { agentExitCodes } from '#agent/core/outcome.ts'
import type { Identity } from '#agent/state/credentials.ts'
import { generateKey } from '#pki/keys.ts'
import { parseJoinString } from '#wire/core/join-string.ts'
import { connected, identityOf, nodeOf, statusOf, troubleAt, withIdentity } from '../system/agent-recovery-setup.ts'
import { runTestAgent, testAgentConfig } from '../fakes/test-agent.ts'
import { eventually } from '../process/eventually.ts'
import { journalEntries } from '../process/plane-records.ts'
import { runMuster } from '../process/run-muster.ts'
import { sharedPlane } from '../process/shared-plane.ts'
import { startAgent, type Agent } from '../process/start-agent.ts'
import { tempFolder } from '../process/temp-folder.ts'

const domain = sharedPlane()
type Scope = Parameters<typeof startAgent>[0]

type StoppedAgent = Pick<Agent, 'state' | 'restart'>

/** It has enrolled in this process; what is made of its folder is for a process of its own. */
const stoppedAgent = async (t: Scope, node: string): Promise<StoppedAgent> => {
  const join = parseJoinString(await domain().token('--node', node)) ?? assert.fail('no join string')
  const config = testAgentConfig(t, join, {})
  const agent = runTestAgent(t, config)
  await connected(domain(), node, 1)
  await agent.stop()
  const state = config.stateFolder
  return { state, restart: () => startAgent(t, { state }) }
}

const withKey = (keyOf: (pem: string) => string) => (identity: Identity) => ({
  ...identity,
  current: { ...identity.current, keyPem: keyOf(identity.current.keyPem) },
})

const withRecoveryKey = (identity: Identity): Identity => {
  const { recovery } = identity
  if (recovery?.credential.kind !== 'key') return assert.fail('no recovery key')
  return { ...identity, recovery: { ...recovery, credential: { ...recovery.credential, keyPem: 'garbage' } } }
}

/** In the middle of the base64 text. */
const oneCharacterChanged = (pem: string): string => {
  const at = pem.indexOf('\n') + 30
  return pem.slice(0, at) + (pem[at] === 'A' ? 'B' : 'A') + pem.slice(at + 1)
}

const damages: readonly [string, (identity: Identity) => Identity][] = [
  ['one character of its key', withKey(oneCharacterChanged)],
  ['garbage as its key', withKey(() => 'garbage')],
  ['another key', withKey(() => generateKey('p256').pkcs8Pem())],
  [
    'half a chain',
    (identity) => ({
      ...identity,
      current: { ...identity.current, chainPem: identity.current.chainPem.slice(0, 300) },
    }),
  ],
]

describe('damaged credentials of an agent', { concurrency: 2 }, () => {
  test('L6: an agent with a damaged key or chain says so and recovers within seconds', async (t) => {
    await Promise.all(
      damages.map(async ([what, damage], index) => {
        const node = `damaged-${index}`
        const agent = await stoppedAgent(t, node)
        withIdentity(agent, damage)
        const again = agent.restart()
        await connected(domain(), node, 2, 30_000)
        assert.match(again.stderr(), /credentials_damaged/, what)
        assert.doesNotMatch(again.stderr(), /endpoint_unreachable/, what)
        const [requested] = await journalEntries(domain(), { node, type: 'node.recovery_requested' })
        assert.match(JSON.stringify(requested), /credentials_damaged/, what)
        await eventually('it to say that all is well', () => statusOf(again).troubles.length === 0)
      }),
    )
  })

  test('L6: with its recovery key damaged as well it says what an operator does, and a repair bundle brings it back', async (t) => {
    const plane = domain()
    const agent = await stoppedAgent(t, 'both-1')
    withIdentity(agent, (identity) => withRecoveryKey(withKey(() => 'garbage')(identity)))
    const again = agent.restart()
    const status = await troubleAt(again, 'enrollment', 'credentials_damaged')
    const [trouble] = status.troubles
    assert.equal(trouble?.class, 'credentials_damaged')
    assert.match(trouble?.text ?? '', /recovery key is damaged as well/)
    assert.match(trouble?.next ?? '', /muster node repair-bundle ID.*muster token create --node ID --replace/)
    const bundle = path.join(tempFolder(t), 'bundle.json')
    const made = await plane.muster('node', 'repair-bundle', 'both-1', '--reason', 'damaged disk', '--out', bundle)
    assert.equal(made.code, 0, made.stderr)
    const brought = await runMuster(['agent', 'repair', '--state', again.state, '--bundle-file', bundle], {})
    assert.equal(brought.code, 0, brought.stderr)
    // In quarantine until an operator has looked at it, as every node that was repaired with a bundle.
    await eventually(
      'the repaired node to be connected',
      async () => {
        const { epoch, channel_open, membership } = await nodeOf(plane, 'both-1')
        return epoch === 2 && channel_open && membership === 'quarantined'
      },
      { withinMs: 30_000 },
    )
  })

  test('L6: a damaged recovery key alone is found by the rehearsal, and the node goes on', async (t) => {
    const plane = domain()
    const agent = await stoppedAgent(t, 'rehearsed-1')
    withIdentity(agent, withRecoveryKey)
    const again = agent.restart()
    await troubleAt(again, 'rehearsal', 'credentials_damaged')
    assert.equal((await connected(plane, 'rehearsed-1', 1)).epoch, 1)
    await eventually('the plane to hear of it', async () =>
      /credentials_damaged/.test(JSON.stringify(await nodeOf(plane, 'rehearsed-1'))),
    )
  })

  test('L6: a new certificate that is damaged before its first use is dropped for the one before it', async (t) => {
    const plane = domain()
    const agent = await stoppedAgent(t, 'pending-1')
    const { serial } = identityOf(agent).current
    withIdentity(agent, (identity) => ({
      ...identity,
      previous: identity.current,
      current: { ...identity.current, keyPem: 'garbage', serial: 'FFFF', proven: false },
    }))
    const again = agent.restart()
    assert.equal((await connected(plane, 'pending-1', 1)).epoch, 1)
    assert.match(again.stderr(), /damaged credentials are ignored/)
    assert.equal(identityOf(again).current.serial, serial)
  })

  test('L6: a truncated identity file ends the agent with what to do, and a new join string is used instead of it', async (t) => {
    const plane = domain()
    const agent = await stoppedAgent(t, 'truncated-1')
    const file = path.join(agent.state, 'identity.json')
    const text = fs.readFileSync(file, 'utf8').slice(0, 2000)
    fs.writeFileSync(file, text)
    const ended = agent.restart()
    const { code } = await ended.ended
    assert.equal(code, agentExitCodes.misconfigured)
    assert.match(ended.stderr(), /state_damaged/)
    assert.match(ended.stderr(), /repair-bundle/)
    assert.equal(fs.readFileSync(file, 'utf8'), text)
    const join = path.join(tempFolder(t), 'join')
    fs.writeFileSync(join, await plane.token('--node', 'truncated-1', '--replace'), { mode: 0o600 })
    startAgent(t, { state: agent.state, args: ['--join-file', join] })
    await connected(plane, 'truncated-1', 2)
    assert.equal(fs.readFileSync(`${file}.damaged`, 'utf8'), text)
  })
})
