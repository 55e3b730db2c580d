// Vault's PKI as an outside issuer (docs/issuers/VAULT.md).

import type { Abilities, OutsideSigner } from './outside-signer.ts'
import { revokeThere, signThere } from './vault-pki.ts'
import { searchVault } from './vault-search.ts'
import { testVault } from './vault-test.ts'
import type { TestedVault } from './vault-test-leaf.ts'

export type VaultIssuer = TestedVault & {
  /** As the last test found them; null: it was never tested. */
  readonly abilities: Abilities | null
}

export const openVaultIssuer = (issuer: VaultIssuer): OutsideSigner => {
  let abilities = issuer.abilities ?? { takesSerial: false, revokes: true, lists: true }
  return {
    get abilities() {
      return abilities
    },
    get aheadMs() {
      return issuer.vault.aheadMs()
    },
    sign: (attempt, signal) => signThere(issuer, attempt, signal),
    // Vault takes no reason.
    revoke: (serial, _reason, signal) => revokeThere(issuer, serial, signal),
    find: async (spki, known, signal) => (abilities.lists ? searchVault(issuer, spki, known, signal) : null),
    test: async (signal) => {
      const tested = await testVault(issuer, signal)
      if (tested.abilities !== null) abilities = tested.abilities
      return tested.faults
    },
  }
}
