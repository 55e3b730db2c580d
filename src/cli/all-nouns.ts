// Every noun of `muster`, in the order its help lists them.

import type { Noun } from '#cli/kit/cli.ts'

export const allNouns: readonly Noun[] = [
  { name: 'plane', load: async () => (await import('./plane/plane.ts')).declarePlane },
  { name: 'demo', load: async () => (await import('./demo/demo.ts')).declareDemo },
  { name: 'token', load: async () => (await import('./enrollment/token.ts')).declareToken },
  { name: 'node', load: async () => (await import('./node/node.ts')).declareNode },
  { name: 'plan', load: async () => (await import('./plans/plan.ts')).declarePlan },
  { name: 'vcluster', load: async () => (await import('./fleet/vcluster.ts')).declareVCluster },
  { name: 'allocation', load: async () => (await import('./fleet/allocation.ts')).declareAllocation },
  { name: 'scheduling', load: async () => (await import('./fleet/scheduling.ts')).declareScheduling },
  { name: 'profile', load: async () => (await import('./settings/profile.ts')).declareProfile },
  { name: 'hardware-profile', load: async () => (await import('./fleet/hardware-profile.ts')).declareHardwareProfile },
  { name: 'domain', load: async () => (await import('./settings/domain.ts')).declareDomain },
  { name: 'peer-domain', load: async () => (await import('./federation/peer-domain.ts')).declarePeerDomain },
  { name: 'ca', load: async () => (await import('./ca/ca.ts')).declareCa },
  { name: 'issuance', load: async () => (await import('./identity/issuance.ts')).declareIssuance },
  { name: 'receipt', load: async () => (await import('./revocation/receipt.ts')).declareReceipt },
  { name: 'alert', load: async () => (await import('./alerts/alert.ts')).declareAlert },
  { name: 'journal', load: async () => (await import('./journal/journal.ts')).declareJournal },
  { name: 'store', load: async () => (await import('./store/store-noun.ts')).declareStore },
  { name: 'key', load: async () => (await import('./operators/key.ts')).declareKey },
  { name: 'agent', load: async () => (await import('./agent/agent.ts')).declareAgent },
  { name: 'explain', load: async () => (await import('./node/explain.ts')).declareExplain },
  { name: 'completion', load: async () => (await import('./kit/completion.ts')).declareCompletion },
  { name: 'version', load: async () => (await import('./kit/version.ts')).declareVersion },
]
