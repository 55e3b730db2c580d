// The nodes, in figures.

import { Gauge, type Registry } from 'prom-client'
import { membershipKinds } from '#domain/core/node.ts'
import { openFleetCensus } from './fleet-census.ts'
import type { Core } from '#plane/core/core.ts'

export const openFleetGauges = (core: Pick<Core, 'store' | 'clock' | 'timers'>, registers: Registry[]): void => {
  const census = openFleetCensus(core)
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
  new Gauge({
    name: 'muster_node_conditions',
    help: 'Nodes with a condition, by its name',
    labelNames: ['condition'] as const,
    registers,
    async collect() {
      for (const [condition, count] of Object.entries((await census()).conditions)) this.set({ condition }, count)
    },
  })
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

const openRecoverability = (census: ReturnType<typeof openFleetCensus>, registers: Registry[]): void => {
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
    help: 'Nodes that have not, by what is missing',
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
