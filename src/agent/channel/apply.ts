// What the plane sends over a channel, put into force. Kept before it is acknowledged; if it cannot be kept, that is said,
// and tried again (identity/report-storage.ts).

import type { PlaneTrust } from '#wire/channel/channel.ts'
import { keptIssuerRoots } from '#agent/state/identity-keeper.ts'
import type { AgentParts } from '#agent/core/agent-parts.ts'
import { faultOfNewRoots } from '#agent/state/certificate-answer.ts'
import { mergeWithdrawn, type Identity } from '#agent/state/credentials.ts'
import type { Kept } from '#agent/state/identity-keeper.ts'
import type { Applied, ChannelUser, Revisions } from './channel.ts'

export type ApplyingAgent = Pick<
  AgentParts,
  | 'keeper'
  | 'marks'
  | 'lastConfig'
  | 'record'
  | 'log'
  | 'outbox'
  | 'sightings'
  | 'wireguard'
  | 'overlay'
  | 'programs'
  | 'tasks'
>

export const channelUser = (agent: ApplyingAgent): ChannelUser => {
  const { keeper, lastConfig, record, log, outbox, sightings } = agent
  record.facts({ vcluster: lastConfig.current()?.vcluster ?? null })

  const revisions = (): Revisions => ({
    config_revision: lastConfig.current()?.revision ?? 0,
    trust_revision: keeper.credentials().identity?.trustRevision ?? 0,
  })
  const applied = (...results: Kept[]): Applied => {
    const failed = [...results, stillUnwritten(agent)].find((result) => !result.persisted)
    return { ...revisions(), persisted: failed === undefined, detail: failed === undefined ? null : failed.detail }
  }

  return {
    revisions,
    reported: ({ instance, number }) => {
      outbox.acknowledge(instance, number)
      record.facts({ reports: outbox.counts() })
    },
    sighting: () => sightings.newest(domainNow(agent)),
    earlierSightings: () => sightings.earlier(domainNow(agent)),
    sighted: ({ statement }) => {
      if (!sightings.saw(statement, domainNow(agent))) log.warn('a sighting of the plane was rejected')
    },
    marked: () => {
      const { identity } = keeper.credentials()
      if (identity === null) return
      agent.marks.learn({ ...identity, marked: true })
      if (identity.marked) return
      amend(agent, { marked: true })
      log.info('the certificates of this plane carry its mark: a server without it is not accepted any more')
    },
    peersHave: () => agent.wireguard.have(),
    peers: (peers, answer) => agent.wireguard.receive(peers, answer),
    programLists: (lists) => agent.programs.announced(lists),
    takesTasks: () => agent.tasks.takes(),
    task: ({ task }) => agent.tasks.received(task),
    taskVerifiers: ({ number }) => agent.tasks.announced(number),
    issuerRootsState: () => ({ revision: keptIssuerRoots(keeper) }),
    issuerRoots: ({ revision, roots }) => {
      if (revision === keeper.credentials().identity?.issuerRoots.revision) return keeper.isPersisted()
      log.info({ revision, roots: roots.length }, 'new roots of outside issuers')
      return amend(agent, { issuerRoots: { revision, roots } }).persisted
    },
    unknown: (type) => {
      // An older plane has taken the place of the one that understood them: they wait for the next channel.
      if (type === 'report') outbox.use(null)
      log.warn({ type }, 'the plane does not know frames of this type')
    },
    complaint: (why) => log.warn({ why }, 'a frame of the plane was skipped'),
    config: (next) => {
      // Another revision, not a higher one: the plane decides which is in force, also after it was restored from a backup.
      if (next.revision === lastConfig.current()?.revision) return applied()
      record.facts({ vcluster: next.vcluster, profile: next.profile.name })
      log.info({ revision: next.revision, vcluster: next.vcluster, profile: next.profile.name }, 'new configuration')
      const kept = applied(amend(agent, { profile: next.profile, endpoints: next.endpoints }), lastConfig.keep(next))
      agent.wireguard.configured(next.wireguard)
      agent.overlay.configChanged()
      agent.programs.configChanged()
      return kept
    },
    trust: (next: PlaneTrust) => {
      if (next.revision === revisions().trust_revision) return applied()
      const fault = faultOfNewRoots(keeper.credentials().identity?.roots ?? [], next.roots)
      if (fault !== null) {
        log.error({ revision: next.revision, fault }, 'new roots were rejected')
        return applied({ persisted: false, detail: `the roots of revision ${next.revision} were not taken: ${fault}` })
      }
      const withdrawnIssuers = mergeWithdrawn(
        agent.keeper.credentials().identity?.withdrawnIssuers ?? [],
        next.withdrawn_issuers,
      )
      const facts = { revision: next.revision, roots: next.roots.length, withdrawn: withdrawnIssuers.length }
      log.info(facts, 'new roots')
      return applied(amend(agent, { roots: next.roots, withdrawnIssuers, trustRevision: next.revision }))
    },
  }
}

const domainNow = ({ keeper }: ApplyingAgent): string => keeper.credentials().identity?.domain ?? ''

const stillUnwritten = ({ keeper, lastConfig }: ApplyingAgent): Kept =>
  keeper.isPersisted() && lastConfig.isPersisted()
    ? { persisted: true }
    : { persisted: false, detail: 'what was received before could not be written yet' }

const amend = ({ keeper }: ApplyingAgent, change: Partial<Identity>): Kept => {
  const { identity, request } = keeper.credentials()
  if (identity === null) return { persisted: false, detail: 'the agent has no identity' }
  return keeper.keep({ identity: { ...identity, ...change }, request })
}
