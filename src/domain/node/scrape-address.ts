// Where a Prometheus may scrape a machine. Only operators say so: what a node claims of itself must not direct another program's
// connections (ruling 12). The plane hands it out and never connects to it.

import { entry, nodeDecided, type NodeDecided, type NodeFacts } from '#domain/core/change.ts'
import type { Unchanged } from '#domain/core/conditions.ts'
import { refuse, refuseField, type Refusal } from '#domain/core/refusal.ts'

/** `address` null: it is scraped no more. */
export const decideScrapeAddress = (
  facts: NodeFacts & { readonly address: string | null },
): NodeDecided | Unchanged | Refusal => {
  const { node, address, by, nowMs } = facts
  const { id, epoch, membership, scrapeAddress: was } = node.value
  if (membership.kind === 'revoked') return refuse('NODE_REVOKED')
  if (address !== null && !isScrapeAddress(address))
    return refuseField('REQUEST_INVALID', 'address', 'an address is HOST:PORT; IPv6 addresses are in brackets')
  if (address === was) return { kind: 'unchanged' }
  return nodeDecided(node, { ...node.value, scrapeAddress: address }, [
    entry(by, nowMs, 'node.scrape_address_changed', { node: id, epoch }, { address, was }),
  ])
}

const shape = /^(?:\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?):([1-9]\d{0,4})$/

export const isScrapeAddress = (text: string): boolean => Number(shape.exec(text)?.[1] ?? 65_536) <= 65_535
