import type { IdentityHolders } from '#plane/identity/holders.ts'

/** A plane without channels: no process holds any identity. */
export const noHolders: Omit<IdentityHolders, 'opened'> = {
  other: async () => null,
  isConnected: async () => false,
  isCurrent: async () => false,
  awaitReturn: async () => 'nothing',
}
