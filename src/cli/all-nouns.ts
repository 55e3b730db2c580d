// Every noun of `muster`, in the order its help lists them. Nothing of a noun is loaded for the list itself.

import type { Noun } from '#cli/kit/cli.ts'
import { agentNoun, versionNoun } from './node-nouns.ts'

export const allNouns: readonly Noun[] = [
  {
    name: 'plane',
    usage: 'plane [options]',
    summary: 'Run a plane; its data folder is made at the first start',
    load: async () => (await import('./plane/plane.ts')).declarePlane,
  },
  {
    name: 'demo',
    usage: 'demo [options]',
    summary: 'A plane with real agents in a temporary folder, to look around in; Ctrl-C removes it',
    load: async () => (await import('./demo/demo.ts')).declareDemo,
  },
  {
    name: 'demo-agents',
    hidden: true,
    summary: '',
    load: async () => (await import('./demo/demo.ts')).declareDemoAgents,
  },
  {
    name: 'token',
    summary: 'Enrollment tokens for machines, each good for one enrollment',
    load: async () => (await import('./enrollment/token.ts')).declareToken,
  },
  {
    name: 'node',
    summary: 'Nodes: register, list and inspect them, and act on them',
    load: async () => (await import('./node/node.ts')).declareNode,
  },
  {
    name: 'top',
    usage: 'top [options]',
    summary: 'A live view of the fleet in the terminal',
    load: async () => (await import('./top/top.ts')).declareTop,
  },
  {
    name: 'program',
    summary: 'Certificates for programs on nodes',
    load: async () => (await import('./programs/program.ts')).declareProgram,
  },
  {
    name: 'rollout',
    summary: 'One task for many nodes: how far it is, and what is held',
    load: async () => (await import('./tasks/rollout.ts')).declareRollout,
  },
  {
    name: 'task',
    summary: 'Signed instructions to nodes: queue them, and see what became of them',
    load: async () => (await import('./tasks/task.ts')).declareTask,
  },
  {
    name: 'signer',
    summary: 'The keys that sign tasks',
    load: async () => (await import('./tasks/signer.ts')).declareSigner,
  },
  {
    name: 'plan',
    summary: 'Plans: what a command would do',
    load: async () => (await import('./plans/plan.ts')).declarePlan,
  },
  {
    name: 'export',
    usage: 'export [options]',
    summary: 'Print profiles, vClusters, hardware profiles, worker issuers and values of the domain as one document',
    load: async () => (await import('./plans/document.ts')).declareExport,
  },
  {
    name: 'apply',
    usage: 'apply -f <file> [options]',
    summary: 'Make them what such a document says, as one plan',
    load: async () => (await import('./plans/document.ts')).declareApply,
  },
  {
    name: 'vcluster',
    summary: 'Groups of nodes: what they run, and who may do what there',
    load: async () => (await import('./fleet/vcluster.ts')).declareVCluster,
  },
  {
    name: 'allocation',
    summary: 'Work on nodes: who has placed what where',
    load: async () => (await import('./fleet/allocation.ts')).declareAllocation,
  },
  {
    name: 'scheduling',
    summary: 'Where work may be placed, as a scheduler sees it',
    load: async () => (await import('./fleet/scheduling.ts')).declareScheduling,
  },
  {
    name: 'profile',
    summary: 'Named policies: lifetimes, keys, ways to join and to come back',
    load: async () => (await import('./settings/profile.ts')).declareProfile,
  },
  {
    name: 'hardware-profile',
    summary: 'Kinds of machines, and what each can be sold as',
    load: async () => (await import('./fleet/hardware-profile.ts')).declareHardwareProfile,
  },
  {
    name: 'domain',
    summary: 'Settings of the whole trust domain',
    load: async () => (await import('./settings/domain.ts')).declareDomain,
  },
  {
    name: 'peer-domain',
    summary: 'Other domains that may have the same machines in their registries',
    load: async () => (await import('./federation/peer-domain.ts')).declarePeerDomain,
  },
  {
    name: 'worker',
    summary: 'Workers: programs that queue tasks, with certificates of their own',
    load: async () => (await import('./workers/worker.ts')).declareWorker,
  },
  {
    name: 'worker-issuer',
    summary: 'Whose service-account tokens make workers, and what those may queue',
    load: async () => (await import('./workers/worker-issuer.ts')).declareWorkerIssuer,
  },
  {
    name: 'issuer',
    summary: 'Who signs certificates: the built-in authority, step-ca, Vault',
    load: async () => (await import('./issuers/issuer.ts')).declareIssuer,
  },
  {
    name: 'ca',
    summary: 'The certificate authority of the domain',
    load: async () => (await import('./ca/ca.ts')).declareCa,
  },
  {
    name: 'issuance',
    summary: 'Halt and resume the issuing of certificates',
    load: async () => (await import('./identity/issuance.ts')).declareIssuance,
  },
  {
    name: 'receipt',
    summary: 'Receipts: the proof that an identity was revoked or quarantined',
    load: async () => (await import('./revocation/receipt.ts')).declareReceipt,
  },
  {
    name: 'alert',
    summary: 'Alerts: what an operator should look at',
    load: async () => (await import('./alerts/alert.ts')).declareAlert,
  },
  {
    name: 'journal',
    summary: 'The hash-chained record of everything that happened',
    load: async () => (await import('./journal/journal.ts')).declareJournal,
  },
  {
    name: 'store',
    summary: 'The store of a plane: inspect, back up, restore, copy',
    load: async () => (await import('#cli/store/store.ts')).declareStore,
  },
  {
    name: 'key',
    summary: 'Operator keys: who may use the operator plane',
    load: async () => (await import('./operators/key.ts')).declareKey,
  },
  agentNoun,
  {
    name: 'explain',
    usage: 'explain <code>',
    summary: 'Explain the short code of a node without a network',
    load: async () => (await import('./node/explain.ts')).declareExplain,
  },
  {
    name: 'completion',
    usage: 'completion <shell>',
    summary: 'Print a script that completes commands in your shell',
    load: async () => (await import('./kit/completion.ts')).declareCompletion,
  },
  versionNoun,
]
