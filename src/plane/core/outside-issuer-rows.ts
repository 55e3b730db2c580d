import type { IssuerRow } from '#domain/ca/issuer.ts'
import type { Row } from '#domain/core/change.ts'
import type { IssuerId } from '#domain/core/node.ts'
import { builtIn } from '#domain/core/profile.ts'
import type { OutsideIssuer } from '#domain/issuers/outside-issuer.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { rowPages } from './pages.ts'

/** Every outside issuer there is or was, as the store has it now. */
export const readIssuers = async (store: Pick<Store, 'list'>): Promise<readonly Row<OutsideIssuer>[]> =>
  (await Array.fromAsync(rowPages(store, 'outside-issuer', ({ name }) => name))).flat()

/** Who signs under an authority: `built-in`, or the name of an outside issuer; its id where no issuer has it any more. */
export const signerNames = async (store: Pick<Store, 'issuers' | 'list'>): Promise<(authority: IssuerId) => string> => {
  const outside = new Map<IssuerId, IssuerRow>()
  for (const { value } of await store.issuers()) if (value.role.startsWith('outside-')) outside.set(value.id, value)
  if (outside.size === 0) return () => builtIn
  const issuers = (await readIssuers(store)).map(({ value }) => value)
  // One that has retired may have a successor with its roots.
  const byRoot = new Map<IssuerId, string>()
  for (const isRetired of [true, false])
    for (const { name, roots, state } of issuers)
      if ((state.kind === 'retired') === isRetired) for (const root of roots) byRoot.set(root, name)
  return (authority) => {
    let row = outside.get(authority)
    if (row === undefined) return builtIn
    // A path has a handful of authorities.
    for (let steps = 0; row !== undefined && steps < outside.size; steps++) {
      const name = byRoot.get(row.id)
      if (name !== undefined) return name
      row = outside.get(row.parent)
    }
    return authority
  }
}
