// The nodes, in figures.

import { Gauge, type Registry } from 'prom-client'
import { membershipKinds } from '#domain/core/node.ts'
import type { FleetCensus } from './fleet-census.ts'
import type { Core } from '#plane/core/core.ts'

/** Every replica shows the same: they are about the registry, which the replicas share. */
export const openFleetGauges = (
  core: Pick<Core, 'store' | 'clock' | 'timers'>,
  census: FleetCensusNow,
  registers: Registry[],
): void => {
  new Gauge({
    name: 'muster_nodes',
    help: 'Nodes in the registry, by membership',
    labelNames: ['membership'] as const,
    registers,
    async collect() {
      const counts = await core.store.countNodes()
      for (const membership of membershipKinds) this.set({ membership }, counts[membership])
    },
  })
  openGroupGauges(core, census, registers)
  new Gauge({
    name: 'muster_certificates_expiring',
    help: 'Nodes whose newest certificate ends within so long, or has ended',
    labelNames: ['within'] as const,
    registers,
    async collect() {
      for (const [within, count] of Object.entries((await census()).expiring)) this.set({ within }, count)
    },
  })
  new Gauge({
    name: 'muster_certificates_overdue',
    help: 'Nodes whose newest certificate is past five sixths of its life',
    registers,
    async collect() {
      this.set((await census()).overdue)
    },
  })
  openRecoverability(census, registers)
}

export type FleetCensusNow = () => Promise<FleetCensus>

const openGroupGauges = ({ clock }: Pick<Core, 'clock'>, census: FleetCensusNow, registers: Registry[]): void => {
  new Gauge({
    name: 'muster_node_conditions',
    help: 'Nodes with a condition, by its name',
    labelNames: ['condition', 'vcluster', 'profile'] as const,
    registers,
    async collect() {
      const { groups } = await census()
      this.reset()
      for (const [labels, { conditions }] of groups)
        for (const [condition, count] of Object.entries(conditions)) this.set({ ...labels, condition }, count)
    },
  })
  new Gauge({
    name: 'muster_cert_expiry_min_seconds',
    help: 'Seconds until the certificate ends that ends first, of the newest of each node; below zero since it has',
    labelNames: ['vcluster', 'profile'] as const,
    registers,
    async collect() {
      const { groups } = await census()
      this.reset()
      for (const [labels, { firstEndMs }] of groups)
        if (firstEndMs !== null) this.set(labels, (firstEndMs - clock.nowMs()) / 1000)
    },
  })
}

const openRecoverability = (census: FleetCensusNow, registers: Registry[]): void => {
  new Gauge({
    name: 'muster_nodes_recoverable',
    help: 'Nodes that have shown by a rehearsal that they would come back by themselves',
    registers,
    async collect() {
      this.set((await census()).recoverable)
    },
  })
  new Gauge({
    name: 'muster_nodes_unrecoverable',
    help: 'Nodes that have not shown that they would come back by themselves, by what is missing',
    labelNames: ['why'] as const,
    registers,
    async collect() {
      for (const [why, count] of Object.entries((await census()).unrecoverable)) this.set({ why }, count)
    },
  })
  new Gauge({
    name: 'muster_recoverable_ratio',
    help: 'The share of the fleet that is proven recoverable; 1 where there are no nodes',
    registers,
    async collect() {
      const { nodes, recoverable } = await census()
      this.set(nodes === 0 ? 1 : recoverable / nodes)
    },
  })
}
