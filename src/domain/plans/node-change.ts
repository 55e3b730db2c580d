// What operators do to many nodes at once that leaves their identity alone, or cuts it off until it is released. Each is decided by
// the rule of its own call: a plan shows what that rule says now.

import { counted } from '#domain/core/in-words.ts'
import type { MachineReport } from '#domain/fleet/hardware-rules.ts'
import type { Node, Provisioning } from '#domain/core/node.ts'
import type { Refusal } from '#domain/core/refusal.ts'
import { factsOf, subjectOf } from './plan-effects.ts'
import type { PlanEffect } from './plan.ts'

export type NodeChange =
  | { readonly verb: 'drain' | 'drained' | 'undrain' | 'release' | 'approve' | 'deny' }
  | { readonly verb: 'quarantine' | 'settle'; readonly reason: string }
  /** Prometheus scrapes it no more. */
  | { readonly verb: 'drop-scrape-address' }
  | { readonly verb: 'assign'; readonly to: string }
  | { readonly verb: 'move'; readonly to: string; readonly force: boolean }
  | { readonly verb: 'unassign'; readonly force: boolean }
  /** `unhealthy` null: it is healthy again. */
  | { readonly verb: 'health'; readonly unhealthy: string | null }
  | { readonly verb: 'tag'; readonly add: readonly string[]; readonly remove: readonly string[] }
  | { readonly verb: 'machine'; readonly report: MachineReport }
  /** `state` null: no adapter looks after it any more. */
  | { readonly verb: 'provisioning'; readonly state: Provisioning['state'] | null; readonly detail: string | null }

/** What the rule of the change says of a node now. */
export type ChangeVerdict =
  | { readonly kind: 'changes' }
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

export const changeOf = (node: Node, change: NodeChange, verdict: ChangeVerdict): PlanEffect => {
  const cut = change.verb === 'quarantine' && verdict.kind === 'changes'
  return {
    subject: subjectOf(node),
    effect: effectOf(node, change, verdict),
    loses: cut && hasIdentity(node) ? 'at once' : null,
    unrecoverable: cut ? `it stays out until it is released: muster node release ${node.id}` : null,
    facts: factsOf(node),
  }
}

const hasIdentity = ({ membership: { kind } }: Node): boolean => kind !== 'registered' && kind !== 'revoked'

const effectOf = (node: Node, change: NodeChange, verdict: ChangeVerdict): string => {
  switch (verdict.kind) {
    case 'changes':
      return changeWords(node, change)
    case 'unchanged':
      return 'nothing: it is so already'
    case 'refused': {
      const { code, detail } = verdict.refusal
      return `refused with ${code}${detail === null ? '' : `: ${detail}`}`
    }
  }
}

const changeWords = ({ allocations, assignment }: Node, change: NodeChange): string => {
  const released = allocations === 0 ? '' : `; ${counted(allocations, 'allocation')} released`
  switch (change.verb) {
    case 'drain':
      return allocations === 0
        ? 'drained'
        : `draining: the owners of ${counted(allocations, 'allocation')} are asked to move`
    case 'drained':
      return 'drained'
    case 'undrain':
      return 'takes work again'
    case 'release':
      return 'released: comes back in a new epoch'
    case 'approve':
      return 'approved by one person more'
    case 'deny':
      return 'denied its recoveries, until it is approved'
    case 'quarantine':
      return 'cut off at once'
    case 'settle':
      return 'settled by one person more: the machine that is connected is the right one'
    case 'drop-scrape-address':
      return 'scraped no more'
    case 'assign':
      return `in ${change.to}; its agent starts what ${change.to} runs`
    case 'move':
      return `moved from ${assignment ?? 'no vCluster'} to ${change.to}${released}`
    case 'unassign':
      return `in no vCluster, not schedulable; its services stop${released}`
    case 'health':
      return change.unhealthy === null ? 'healthy: may get work again' : `gets no new work: ${change.unhealthy}`
    case 'tag':
      return [...change.add.map((tag) => `+${tag}`), ...change.remove.map((tag) => `-${tag}`)].join(' ')
    case 'machine':
      return reportWords(change.report)
    case 'provisioning':
      return change.state === null ? 'no adapter looks after it' : change.state
  }
}

const reportWords = ({ firmware, readiness, slots, removeSlots }: MachineReport): string =>
  [
    ...(firmware === null ? [] : [`firmware ${firmware}`]),
    ...(readiness === null ? [] : [readiness.ready ? 'ready' : 'not ready']),
    ...slots.map(({ name, state }) => `slot ${name}: ${state}`),
    ...removeSlots.map((name) => `no slot ${name}`),
  ].join(', ')
