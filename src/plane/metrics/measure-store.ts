// The store in figures: how commits gather into groups, how long a group takes, who lost a race.

import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { Store } from '#plane/store/contract/store.ts'

/** From a fast disk to one that is in trouble. */
const seconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]

export const measureStore = (store: Pick<Store, 'onCommitGroup' | 'trouble'>, registers: Registry[]): void => {
  const counter = (name: string, help: string) => new Counter({ name, help, registers })
  const groups = new Histogram({
    name: 'muster_store_commit_seconds',
    help: 'How long a group of commits took, its flush to the disk included',
    buckets: seconds,
    registers,
  })
  const members = counter(
    'muster_store_group_commits_total',
    'Commits that were in the groups of muster_store_commit_seconds',
  )
  const lostRaces = counter('muster_store_lost_races_total', 'Commits that were decided on what had changed meanwhile')
  const failures = counter('muster_store_failed_groups_total', 'Groups of which nothing could be committed')
  store.onCommitGroup((group) => {
    groups.observe(group.ms / 1000)
    members.inc(group.commits)
    if (group.lostRaces > 0) lostRaces.inc(group.lostRaces)
    if (group.failed) failures.inc()
  })
  new Gauge({
    name: 'muster_store_writable',
    help: '1 while the store can be written to',
    registers,
    collect() {
      this.set(store.trouble() === null ? 1 : 0)
    },
  })
}
