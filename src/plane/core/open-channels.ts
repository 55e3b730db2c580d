// What operators' flows need to know of the channels; the registry of channels has it, and other replicas have theirs.

import type { NodeId } from '#domain/core/node.ts'

export type OpenSession = {
  readonly number: number
  /** Null: it is on a replica that does not say more of it. */
  readonly sinceMs: number | null
  readonly serial: string | null
  /** Its agent has said over it that it takes tasks. Left out: a replica that does not say more of it, or one of the release before. */
  readonly takesTasks?: boolean
}

/** Null: it is not connected, or that is not known. */
export const takesTasks = (sessions: readonly OpenSession[]): boolean | null => {
  if (sessions.some((session) => session.takesTasks === true)) return true
  return sessions.length > 0 && sessions.every((session) => session.takesTasks === false) ? false : null
}

export type OpenChannels = {
  /** Of this replica, oldest first, without channels that have been cut. */
  openSessions(node: NodeId): readonly OpenSession[]
  /** The same of whichever replica holds them. */
  everySession(node: NodeId): Promise<readonly OpenSession[]>
  /** Whether any replica holds one. */
  isConnected(node: NodeId): Promise<boolean>
  /** Of this replica. */
  count(): number
  /**
   * How many channels the withdrawal with this receipt cut on that replica, once it knows of it: from then on it accepts
   * nothing of what was withdrawn. Null: it has not said so in a second. Does not reject.
   */
  cutOn(replica: number, receipt: string): Promise<number | null>
  /** Nothing new is begun for the node while `run` is under way (limits/hold-off.ts). */
  pauseWhile<T>(node: NodeId, run: () => Promise<T>): Promise<T>
}

/** What receipts and views need to know of WireGuard peers. */
export type PeerProofs = {
  /** Whose WireGuard peer a node is now. */
  peersOf(node: NodeId): readonly NodeId[]
  /** Of these nodes those whose agents have confirmed, to whichever replica, a set of peers without this key; and when. */
  peersWithout(publicKey: string, nodes: readonly NodeId[]): Promise<ReadonlyMap<NodeId, number>>
  /** The group it is in, and the revision of the peers it last brought into force; null: in none, none that is known. */
  stateOf(node: NodeId): Promise<{ readonly group: string | null; readonly applied: string | null }>
}
