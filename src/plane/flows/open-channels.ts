// What operators' flows need to know of the channels; the registry of channels has it, and other replicas have theirs.

import type { NodeId } from '#domain/node.ts'

export type OpenSession = {
  readonly number: number
  /** Null: it is on a replica that does not say more of it. */
  readonly sinceMs: number | null
  readonly serial: string | null
}

/** What a withdrawal came to on the other replicas. */
export type CutElsewhere = {
  readonly channels: number
  /** Replicas with a lease that have not said they know of it: theirs ends before they could act on what was withdrawn. */
  readonly unconfirmed: number
}

export type OpenChannels = {
  /** Of this replica, oldest first. A channel that has been cut is not among them, whatever its socket does. */
  openSessions(node: NodeId): readonly OpenSession[]
  /** The same of whichever replica holds them. */
  everySession(node: NodeId): Promise<readonly OpenSession[]>
  /** Whether any replica holds one. */
  isConnected(node: NodeId): Promise<boolean>
  /** Of this replica. */
  count(): number
  /** Waits a moment for the others to hear of an operation that cuts channels. Does not reject: it has happened. */
  cutElsewhere(operation: string): Promise<CutElsewhere>
  /** Nothing new is begun for the node while `run` is under way (hold-off.ts). */
  heldOff<T>(node: NodeId, run: () => Promise<T>): Promise<T>
}

/** What receipts need to know of WireGuard peers. */
export type PeerProofs = {
  /** Whose WireGuard peer a node is now. */
  peersOf(node: NodeId): readonly NodeId[]
  /** Of these nodes those whose agents have confirmed, to whichever replica, a set of peers without this key; and when. */
  peersWithout(publicKey: string, nodes: readonly NodeId[]): Promise<ReadonlyMap<NodeId, number>>
}
