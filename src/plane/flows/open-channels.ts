// What operators' flows need to know of the channels; the registry of channels has it.

import type { NodeId } from '#domain/node.ts'

export type OpenSession = { readonly number: number; readonly sinceMs: number; readonly serial: string }

export type OpenChannels = {
  /** Of this replica, oldest first. A channel that has been cut is not among them, whatever its socket does. */
  openSessions(node: NodeId): readonly OpenSession[]
  count(): number
  /** Nothing new is begun for the node while `run` is under way (hold-off.ts). */
  heldOff<T>(node: NodeId, run: () => Promise<T>): Promise<T>
}
