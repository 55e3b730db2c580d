// How much a thread may have handed over and the main thread not read: of each connection, and of all of them together. A peer that is
// past its handshake has proven nothing yet, and a main thread that is busy reads none of them.

export type UnreadLimits = {
  /** Of one connection, before it is read no further. */
  readonly perConnection: number
  /** Of each connection so much is outside of `inAll`: a caller that sends little never waits for others that send much. */
  readonly free: number
  /** Of all connections, beyond what is free of each. */
  readonly inAll: number
}

export type UnreadBudget = {
  /**
   * What is unread of one connection was `before` and is `after` now; 0 for one that is closed. Returns whether it may be read
   * further. One that may not is looked at again when some of it has been read: it needs no room that another one gives back.
   */
  changed(before: number, after: number): boolean
}

export const openUnreadBudget = ({ perConnection, free, inAll }: UnreadLimits): UnreadBudget => {
  let excess = 0
  const excessOf = (unread: number): number => Math.max(0, unread - free)
  return {
    changed(before, after) {
      excess += excessOf(after) - excessOf(before)
      return after <= free || (after <= perConnection && excess <= inAll)
    },
  }
}
