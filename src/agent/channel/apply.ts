// What the plane sends over a channel, put into force. Kept before it is acknowledged; if it cannot be kept, that is said.

import type { PlaneConfig, PlaneTrust } from '#wire/channel.ts'
import type { AgentParts } from '../agent-deps.ts'
import type { Identity } from '../identity/credentials.ts'
import type { Kept } from '../identity/identity-keeper.ts'
import type { Applied, ChannelUser, Revisions } from './channel.ts'
import { loadLastConfig, saveLastConfig } from './last-config.ts'

export const channelUser = (agent: AgentParts): ChannelUser => {
  let config = loadLastConfig(agent.config.stateFolder)
  agent.board.facts({ vcluster: config === null ? null : config.vcluster })

  const revisions = (): Revisions => ({
    config_revision: config === null ? 0 : config.revision,
    trust_revision: agent.keeper.credentials().identity?.trustRevision ?? 0,
  })
  const applied = (...results: Kept[]): Applied => {
    const failed = results.find((result) => !result.persisted)
    return { ...revisions(), persisted: failed === undefined, detail: failed === undefined ? null : failed.detail }
  }

  return {
    revisions,
    complaint: (why) => agent.log.warn({ why }, 'a frame of the plane was skipped'),
    config: (next) => {
      // Another revision, not a higher one: the plane decides which is in force, also after it was restored from a backup.
      if (config !== null && next.revision === config.revision) return applied()
      config = next
      agent.board.facts({ vcluster: next.vcluster, profile: next.profile.name })
      agent.log.info(
        { revision: next.revision, vcluster: next.vcluster, profile: next.profile.name },
        'new configuration',
      )
      return applied(amend(agent, { profile: next.profile, endpoints: next.endpoints }), saved(agent, next))
    },
    trust: (next: PlaneTrust) => {
      if (next.revision === revisions().trust_revision) return applied()
      agent.log.info({ revision: next.revision, roots: next.roots.length }, 'new roots')
      return applied(amend(agent, { roots: next.roots, trustRevision: next.revision }))
    },
  }
}

const amend = ({ keeper }: AgentParts, change: Partial<Identity>): Kept => {
  const { identity, request } = keeper.credentials()
  if (identity === null) return { persisted: false, detail: 'the agent has no identity' }
  return keeper.keep({ identity: { ...identity, ...change }, request })
}

const saved = (agent: AgentParts, config: PlaneConfig): Kept => {
  try {
    saveLastConfig(agent.config.stateFolder, config)
    return { persisted: true }
  } catch (error) {
    return { persisted: false, detail: error instanceof Error ? error.message.slice(0, 200) : 'unknown' }
  }
}
