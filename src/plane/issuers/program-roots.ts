// The roots of outside issuers that verifiers of programs get beside the programs root. A root is there while an output names its issuer, and as
// long as an order for a program is on record: a month longer than the last of its leaves is valid, or until the issuer retires. Orders of other
// replicas are not published, so an issuer that is named no more keeps its root until orders have been looked for.

import type { Output } from '#domain/programs/output.ts'
import { issuerOf } from '#domain/programs/output.ts'
import type { OutsideIssuer } from '#domain/issuers/outside-issuer.ts'
import { toPem } from '#pki/pem.ts'
import type { Core } from '#plane/core/core.ts'
import { everyRow } from '#plane/core/pages.ts'
import type { UpkeepTask } from '#plane/core/upkeep.ts'
import { mostOutsideRoots } from '#wire/programs/programs-api.ts'
import type { KnownIssuers } from './known-issuers.ts'
import type { OutsideBook } from './outside-book.ts'

export type OutsideProgramRoots = {
  /** PEM, one each; no agent trusts one for a plane. */
  current(): readonly string[]
  readonly upkeep: UpkeepTask
}

/** As often as orders are forgotten. */
const lookEveryMs = 3_600_000

export const openOutsideProgramRoots = async (
  { store, feed }: Pick<Core, 'store' | 'feed'>,
  { known, book }: { readonly known: Pick<KnownIssuers, 'all'>; readonly book: Pick<OutsideBook, 'rootsOf'> },
): Promise<OutsideProgramRoots> => {
  /** What each profile and vCluster lists. */
  const listed = new Map<string, readonly Output[]>()
  /** Ids of issuers with orders for programs. */
  let ordered: ReadonlySet<string> = new Set()
  /** Names of issuers that outputs have, or have had since orders were last looked for. */
  let named = new Set<string>()
  /** Those since the look that is under way began. */
  let namedSince = named
  const list = (key: string, outputs: readonly Output[]): void => {
    listed.set(key, outputs)
    for (const issuer of outputs.map(issuerOf)) {
      named.add(issuer)
      namedSince.add(issuer)
    }
  }
  feed.subscribe('outside roots of programs', ({ writes }) => {
    for (const write of writes)
      if (write.put === 'profile' || write.put === 'vcluster')
        list(`${write.put} ${write.value.name}`, write.value.outputs)
  })
  const look = async (): Promise<void> => {
    namedSince = new Set([...listed.values()].flat().map(issuerOf))
    const found = new Set<string>()
    for (const { id } of known.all()) {
      const orders = await store.list('order', { where: { issuer: id, leaf: 'program' }, after: null, limit: 1 })
      if (orders.length > 0) found.add(id)
    }
    ordered = found
    named = namedSince
  }
  const take = (key: string, outputs: readonly Output[]): void => {
    if (!listed.has(key)) list(key, outputs)
  }
  for (const { value } of await store.profiles()) take(`profile ${value.name}`, value.outputs)
  for await (const { name, outputs } of everyRow(store, 'vcluster', (one) => one.name))
    take(`vcluster ${name}`, outputs)
  await look()

  const isConcerned = ({ id, name, forged }: OutsideIssuer): boolean =>
    forged !== true && (named.has(name) || ordered.has(id))
  return {
    current() {
      // By the names of their issuers: every replica leaves out the same ones.
      const roots = known
        .all()
        .filter(isConcerned)
        .flatMap((issuer) => book.rootsOf(issuer))
      return [...new Set(roots.map((der) => toPem('CERTIFICATE', der)))].slice(0, mostOutsideRoots)
    },
    upkeep: { name: 'outside roots of programs', where: 'each', everyMs: lookEveryMs, run: look },
  }
}
