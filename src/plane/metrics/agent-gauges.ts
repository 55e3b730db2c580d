// What agents report, for a Prometheus that scrapes no host. Each replica shows the nodes whose channel it holds: add up over
// replicas, or take the least or the most.

import { Counter, Gauge, type Registry } from 'prom-client'
import type { Clock } from '#platform/clock.ts'
import type { Timers } from '#platform/timers.ts'
import { agentCounters, agentSeries, pairsOf, type AgentCounter } from '#plane/node/agent-counts.ts'
import { openAgentFigures, type AgentFigures } from '#plane/node/agent-figures.ts'
import { freeSpaceUses, openAgentCensus, type AgentGroup } from './agent-census.ts'
import { otherGroup, type GroupLabels, type Groups } from './group-labels.ts'

export type AgentMetrics = {
  readonly figures: AgentFigures
  /** No node is in these any more. */
  forget(groups: readonly GroupLabels[]): void
}

const agentsPrefix = 'muster_agents_'

export const openAgentMetrics = (
  core: { readonly clock: Clock; readonly timers: Timers },
  groups: Groups,
  registers: Registry[],
): AgentMetrics => {
  const counters = openCounters(registers)
  const begun = new Set<GroupLabels>()
  /** Every series of a group is there from its first node on, at 0: a rate needs a first value. */
  const begin = (labels: GroupLabels): void => {
    if (begun.has(labels)) return
    begun.add(labels)
    for (const { counter, labels: own } of agentSeries) counters[counter].inc({ ...labels, ...own }, 0)
  }
  const figures = openAgentFigures(core.clock, ({ assignment, profile }, growth) => {
    const labels = groups.of(assignment, profile)
    begin(labels)
    for (const [place, count] of pairsOf(growth)) {
      const series = agentSeries[place]
      if (series !== undefined) counters[series.counter].inc({ ...labels, ...series.labels }, count)
    }
  })
  const census = openAgentCensus(core, figures, groups)
  openGroupGauges(
    core.clock,
    async () => {
      const taken = await census()
      for (const labels of taken.keys()) begin(labels)
      return taken
    },
    registers,
  )
  return {
    figures,
    forget(forgotten) {
      for (const labels of forgotten) {
        if (labels === otherGroup || !begun.delete(labels)) continue
        for (const { counter, labels: own } of agentSeries) counters[counter].remove({ ...labels, ...own })
      }
    },
  }
}

const groupLabels = ['vcluster', 'profile'] as const

const openCounters = (registers: Registry[]): Readonly<Record<AgentCounter, Counter>> =>
  Object.fromEntries(
    Object.entries(agentCounters).map(([name, { help, labels }]) => [
      name,
      new Counter({ name: `${agentsPrefix}${name}`, help, labelNames: [...groupLabels, ...labels], registers }),
    ]),
  ) as Record<AgentCounter, Counter>

type Census = ReturnType<typeof openAgentCensus>

const openGroupGauges = (clock: Pick<Clock, 'nowMs'>, census: Census, registers: Registry[]): void => {
  const gauge = (name: string, help: string, value: (group: Readonly<AgentGroup>) => number | null): void => {
    new Gauge({
      name: `${agentsPrefix}${name}`,
      help,
      labelNames: groupLabels,
      registers,
      async collect() {
        const groups = await census()
        this.reset()
        for (const [labels, group] of groups) {
          const now = value(group)
          if (now !== null) this.set(labels, now)
        }
      },
    })
  }
  gauge('reporting', 'Nodes whose agent has a channel on this replica and has reported', ({ nodes }) => nodes)
  gauge(
    'oldest_report_timestamp_seconds',
    'When the agent that has been silent longest last reported, as a Unix time',
    ({ oldestReportMs }) => oldestReportMs / 1000,
  )
  gauge(
    'clock_skew_max_seconds',
    'By how much the clock of a node is off at most, in either direction',
    ({ mostSkewMs }) => mostSkewMs / 1000,
  )
  gauge(
    'program_cert_expiry_min_seconds',
    'Seconds until the first leaf of a program ends; below zero since it has',
    ({ firstLeafEndMs }) => (firstLeafEndMs === null ? null : (firstLeafEndMs - clock.nowMs()) / 1000),
  )
  gauge(
    'program_outputs_in_place',
    'Outputs whose newest leaf and lists are in place and were read by their program',
    ({ outputsInPlace }) => outputsInPlace,
  )
  gauge(
    'program_outputs_failing',
    'Outputs that are not in place, or that their program has not read',
    ({ outputsFailing }) => outputsFailing,
  )
  new Gauge({
    name: `${agentsPrefix}filesystem_available_min_bytes`,
    help: 'Bytes that the agent with the least room may still write, by what for',
    labelNames: [...groupLabels, 'use'] as const,
    registers,
    async collect() {
      const groups = await census()
      this.reset()
      for (const [labels, { leastFreeBytes }] of groups)
        for (const use of freeSpaceUses) this.set({ ...labels, use }, leastFreeBytes[use])
    },
  })
}
