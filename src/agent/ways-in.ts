// The ways in that this agent has, and what it says when none of them leads anywhere.

import type { AgentParts } from './agent-deps.ts'
import type { AgentConfig } from './config.ts'
import { enroll } from './enrollment/enroll.ts'
import { dropUsedJoin, findJoin } from './enrollment/join-source.ts'
import type { IdentityProvider, Need } from './identity/provider.ts'
import { trouble, type Trouble } from './trouble.ts'

export const waysIn = (agent: AgentParts): readonly IdentityProvider[] => [storedIdentity(agent), enrollment(agent)]

/** A token that was not used yet: somebody made it for a machine that was thrown out. */
export const isInvitedAnew = ({ config, keeper }: AgentParts): boolean => {
  const found = findJoin(config, keeper.credentials().identity)
  return found.kind === 'join' && config.joinMethod === 'token'
}

const storedIdentity = (agent: AgentParts): IdentityProvider => ({
  name: 'stored',
  provide: (need) => {
    const { identity } = agent.keeper.credentials()
    if (need !== 'start' || identity === null) return Promise.resolve({ kind: 'not-mine' })
    // An agent that was killed between keeping its certificate and deleting the join string finds it here.
    dropUsedJoin(agent.config, identity)
    if (isInvitedAnew(agent)) agent.log.info({ node: identity.nodeId }, 'there is an identity: the join string waits')
    return Promise.resolve({ kind: 'identity' })
  },
})

const enrollment = (agent: AgentParts): IdentityProvider => ({
  name: 'enrollment',
  provide: async () => {
    const found = findJoin(agent.config, agent.keeper.credentials().identity)
    if (found.kind === 'none') return { kind: 'not-mine' }
    if (found.kind === 'unreadable') {
      const what = trouble('join_string_unusable', `${found.why}.`, 'Make a new one: muster token create --node ID')
      return { kind: 'failed', outcome: { kind: 'misconfigured', trouble: what } }
    }
    agent.board.phase('enrolling')
    return enroll(agent, found.join)
  },
})

export const noWayIn = ({ join, stateFolder }: AgentConfig, need: Need): Trouble => {
  const looked = join.kind === 'file' ? `no join string in ${join.path}` : 'only a join string that has been used'
  return need === 'start'
    ? trouble(
        'no_identity',
        `There is no identity in ${stateFolder} and ${looked}.`,
        'Make one: muster token create --node ID, and pass it by --join-file',
      )
    : trouble(
        'no_way_back',
        `The plane does not take this identity, and there is ${looked}.`,
        'See why: muster node show ID; then muster token create --node ID',
      )
}
