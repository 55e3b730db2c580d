import type { Row } from '#domain/core/change.ts'
import type { OutsideIssuer } from '#domain/issuers/outside-issuer.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { rowPages } from './pages.ts'

/** Every outside issuer there is or was, as the store has it now. */
export const readIssuers = async (store: Pick<Store, 'list'>): Promise<readonly Row<OutsideIssuer>[]> =>
  (await Array.fromAsync(rowPages(store, 'outside-issuer', ({ name }) => name))).flat()
