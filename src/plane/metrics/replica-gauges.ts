// How this plane stands to the others over the same store.

import { Gauge, type Registry } from 'prom-client'
import type { Replicas, Standing } from '#plane/store/contract/replicas.ts'
import { gaugeOf } from './gauge-of.ts'

export type ReplicaGaugesDeps = { readonly store: { readonly replicas: Replicas } }

const standings: readonly Standing['kind'][] = ['serving', 'behind', 'skewed', 'in-doubt', 'expired']

export const openReplicaGauges = ({ store }: ReplicaGaugesDeps, registers: Registry[]): void => {
  const { replicas } = store
  const gauge = gaugeOf(registers)
  gauge('muster_replicas', 'Planes with a lease on this store, as this one last saw them', () => replicas.count())
  gauge('muster_leads', '1 while this plane leads the others and runs the sweeps', () =>
    replicas.leadership() === null ? 0 : 1,
  )
  gauge(
    'muster_feed_age_seconds',
    'How long ago this plane knew of everything the others had committed',
    () => (replicas.behindMs() ?? Number.POSITIVE_INFINITY) / 1000,
  )
  gauge(
    'muster_clock_offset_seconds',
    "How far the clock of this plane is ahead of the database's; 0 with the embedded store",
    () => (replicas.clockOffsetMs() ?? 0) / 1000,
  )
  new Gauge({
    name: 'muster_standing',
    help: 'How this plane stands: serving, behind (it decides nothing), skewed (its clock is off), in-doubt (its store has lost commits) or expired (it answers nothing)',
    labelNames: ['standing'] as const,
    registers,
    collect() {
      const now = replicas.standing().kind
      for (const standing of standings) this.set({ standing }, standing === now ? 1 : 0)
    },
  })
}
