// Whether anything is issued at all. An operator halts it for the whole domain; every decision to issue reads the domain's
// row, so that a halt beats what was decided before it.

export type Issuance =
  | { readonly kind: 'open' }
  /** `renewals`: nodes that are in still renew. */
  | {
      readonly kind: 'halted'
      readonly by: string
      readonly sinceMs: number
      readonly reason: string
      readonly renewals: boolean
    }

export const openIssuance: Issuance = { kind: 'open' }
