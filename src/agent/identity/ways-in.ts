// The ways in that this agent has, and what it says when none of them leads anywhere.

import { withSignal, type AgentParts } from '#agent/core/agent-parts.ts'
import type { AgentConfig } from '#agent/core/config.ts'
import { enroll, type EnrollingAgent } from '#agent/enrollment/enroll.ts'
import { dropUsedJoin, findJoin } from '#agent/enrollment/join-source.ts'
import { readBootstrapCertificate } from '#agent/link/bootstrap-certificate.ts'
import type { Identity } from '#agent/state/credentials.ts'
import type { IdentityProvider, Need, Provided } from '#agent/state/provider.ts'
import { damageOf } from '#agent/state/sound-credentials.ts'
import { expired, isExpired } from '#agent/state/sound-credentials.ts'
import type { Story } from '#agent/recovery/episode.ts'
import { recover, type RecoveryAgent } from '#agent/recovery/recover.ts'
import { isInvited, waitForCredential } from '#agent/recovery/wait-for-credential.ts'
import { repairRequested, wayBack } from '#agent/recovery/way-back.ts'
import { classified, trouble, type Trouble } from '#agent/core/trouble.ts'

type JoiningAgent = EnrollingAgent & RecoveryAgent

/** `better`: sources that are preferred to the plane's own, such as SPIRE. */
export const waysIn = (agent: JoiningAgent, better: readonly IdentityProvider[]): readonly IdentityProvider[] => [
  ...better,
  { source: 'plane', provide: (need, signal) => planeIdentity(withSignal(agent, signal), need) },
  { source: 'static', provide: () => Promise.resolve(staticIdentity(agent.config)) },
]

/** An unused token: an operator made it for a machine that was shut out. */
export const isInvitedAnew = (agent: Pick<AgentParts, 'config' | 'keeper'>): boolean =>
  agent.config.joinMethod === 'token' && isInvited(agent)

/** The stored identity while it is valid; then recovery, then enrollment. */
const planeIdentity = async (agent: JoiningAgent, need: Need): Promise<Provided> => {
  const { identity } = agent.keeper.credentials()
  const stored = identity?.source === 'plane' ? identity : null
  if (need === 'better') return { kind: 'not-mine' }
  if (need === 'start' && stored !== null) {
    // An agent that was killed between keeping its certificate and deleting the join string finds it here.
    dropUsedJoin(agent, stored)
    if (isInvitedAnew(agent))
      agent.log.info(
        { node: stored.nodeId },
        'the agent has an identity: the join string is used only if the plane does not take that',
      )
    const asked = wayBack(agent)?.credential.kind === 'repair' || isExpired(agent, stored)
    if (!asked && damageOf(stored) === null) return { kind: 'identity' }
  }
  const story = storyOf(agent, stored)
  // Otherwise the end of the previous session has recorded it.
  if (need === 'start' && wayBack(agent) !== null) agent.record.trouble('enrollment', story.trouble, null)
  const back = await recover(agent, story)
  if (back.kind !== 'not-mine') return back
  const found = findJoin(agent.config, identity)
  const damage = stored === null ? null : damageOf(stored)
  // Nothing on this machine helps, and an operator may bring something that does: no reason to exit.
  if (found.kind === 'none' && damage !== null) return awaitRepair(agent, damage, need)
  // Expired by a clock in doubt, and no other source of identity: the plane may find the certificate valid.
  if (found.kind === 'none' && need === 'start' && stored !== null) return { kind: 'identity' }
  if (found.kind === 'none') return { kind: 'not-mine' }
  if (found.kind === 'unreadable') {
    const what = trouble(
      'join_string_unusable',
      `${found.why}.`,
      `Make a new one: muster token create --node ${identity?.nodeId ?? 'ID'}`,
    )
    return { kind: 'failed', outcome: { kind: 'misconfigured', trouble: what } }
  }
  agent.record.phase('enrolling')
  return enroll(agent, found.join)
}

const repairMs = 30_000

const awaitRepair = async (agent: JoiningAgent, damage: Trouble, need: Need): Promise<Provided> => {
  agent.record.phase('rejoining')
  agent.record.trouble('enrollment', damage, null)
  agent.log.error({ code: damage.code, class: damage.class, next: damage.next }, damage.text)
  while (!agent.signal.aborted) {
    if ((await waitForCredential(agent, repairMs)) !== 'none') return planeIdentity(agent, need)
  }
  return { kind: 'failed', outcome: { kind: 'stopped' } }
}

/** The failure so far; at a start, what is wrong with what this machine has, or only that a repair bundle was brought. */
const storyOf = (agent: JoiningAgent, stored: Identity | null): Story => {
  const current = agent.episode.current()
  if (current !== null) return current
  const damage = stored === null ? null : damageOf(stored)
  if (damage !== null) {
    agent.log.error({ code: damage.code, class: damage.class, next: damage.next }, damage.text)
    return agent.episode.failed(damage)
  }
  if (stored !== null && isExpired(agent, stored)) return agent.episode.failed(expired(agent, stored))
  return agent.episode.failed(stored === null ? credentialsLost : repairRequested)
}

const credentialsLost = classified(
  trouble('credentials_lost', 'This machine has no identity.', 'The agent uses the repair bundle automatically'),
  'credentials_damaged',
)

/** Never an identity: it is the same on every machine of the image. */
const staticIdentity = (config: AgentConfig): Provided => {
  const read = readBootstrapCertificate(config)
  return read.kind === 'broken' ? read : { kind: 'not-mine' }
}

export const noWayIn = ({ config, keeper }: Pick<AgentParts, 'config' | 'keeper'>, need: Need): Trouble => {
  const { join, stateFolder } = config
  const id = keeper.credentials().identity?.nodeId ?? 'ID'
  const looked = join.kind === 'file' ? `no join string in ${join.path}` : 'only a join string that has been used'
  return need === 'start'
    ? trouble(
        'no_identity',
        `There is no identity in ${stateFolder} and ${looked}.`,
        'Make one: muster token create --node ID, and put it into /etc/muster/join, where the unit of the package finds it, or name its file with --join-file',
      )
    : trouble(
        'no_way_back',
        `The plane does not take this identity, and there is ${looked}.`,
        `See why: muster node show ${id}; then muster token create --node ${id}`,
      )
}
