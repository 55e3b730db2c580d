// An alert is something a person should look at. One for each kind and subject: it is raised again when it recurs after
// it was resolved, and a repeated report of it is not a new alert.

import type { AlertKind, AlertSeverity } from './alert-kinds.ts'
import type { NodeId } from '#domain/core/node.ts'

export type Alert = {
  /** Unique for every raised alert: the receiver of a webhook recognises repeats by it. */
  readonly id: string
  readonly kind: AlertKind
  /** A node's id, the id of a token or an authority, the hash of a key, or the name of the domain. */
  readonly subject: string
  readonly node: NodeId | null
  readonly severity: AlertSeverity
  readonly sinceMs: number
  readonly reason: string
  readonly state: AlertState
}

export type AlertState =
  | { readonly kind: 'open' }
  | ({ readonly kind: 'acknowledged' } & Acknowledgement)
  /** `acknowledged`: absent if it ended without an acknowledgement. */
  | { readonly kind: 'resolved'; readonly atMs: number; readonly acknowledged?: Acknowledgement }

export type Acknowledgement = { readonly by: string; readonly atMs: number; readonly note: string | null }

/** Null: not acknowledged. */
export const acknowledgementOf = (state: AlertState): Acknowledgement | null => {
  switch (state.kind) {
    case 'open':
      return null
    case 'acknowledged':
      return { by: state.by, atMs: state.atMs, note: state.note }
    case 'resolved':
      return state.acknowledged ?? null
  }
}

export const alertStates = ['open', 'acknowledged', 'resolved'] as const satisfies readonly AlertState['kind'][]

export const alertKey = ({ kind, subject }: Pick<Alert, 'kind' | 'subject'>): string => `${kind}/${subject}`
