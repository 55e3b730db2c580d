// Who holds which MAC address and BMC serial. The primary key is what makes a hardware identity unique in the domain
// of two nodes that claim one address at the same moment, the database lets one have it.

import type { NodeId } from '#domain/core/node.ts'
import type { Database } from '#platform/sqlite.ts'

export type HardwareTable = {
  /**
   * Sets what each of these nodes holds, after their rows were written. Everything is given up before anything is
   * taken, so an address can move between two nodes of one change. A revoked node takes nothing, and any node may take what it
   * holds. Throws the database's unique violation when another node holds one of them.
   */
  assign(holdings: readonly Holding[]): void
}

export type Holding = { readonly node: NodeId; readonly addresses: readonly string[]; readonly tombstone: boolean }

export const openHardwareTable = (database: Database): HardwareTable => {
  const held = database.prepare('SELECT value FROM hardware WHERE node = ?')
  const take = database.prepare('INSERT INTO hardware (value, node) VALUES (?, ?)')
  const inherit = database.prepare(
    "DELETE FROM hardware WHERE value = ? AND (SELECT membership FROM node WHERE key = hardware.node) = 'revoked'",
  )
  const giveUp = database.prepare('DELETE FROM hardware WHERE value = ?')
  return {
    assign(holdings) {
      const wanted: [address: string, node: NodeId][] = []
      for (const { node, addresses, tombstone } of holdings) {
        const has = held.all(node).map((row) => row['value'] as string)
        for (const address of has) if (!addresses.includes(address)) giveUp.run(address)
        for (const address of addresses) if (!has.includes(address) && !tombstone) wanted.push([address, node])
      }
      for (const [address, node] of wanted) {
        inherit.run(address)
        take.run(address, node)
      }
    },
  }
}
