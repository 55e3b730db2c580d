// While planes are upgraded one after the other, those of the release before go on writing rows as they know them, after the
// schema has been brought up to date. What such a row lacks is what the step gave to the rows that were there then.

import type { Row, RowKind, RowTypes } from '#domain/core/change.ts'
import { maintenancePolicy, openIssuance } from '#domain/core/domain-settings.ts'
import { nothingTagged } from '#domain/core/hardware-profile.ts'
import { defaultProbeSilenceMs } from '#domain/core/profile.ts'
import { noWireguard } from '#domain/core/wireguard.ts'
import { decodeRow } from '#plane/store/commit/row-tables.ts'

const lacking: { readonly [K in RowKind]?: Partial<RowTypes[K]> } = {
  node: { allocations: 0, wireguard: null, machine: nothingTagged },
  profile: { wireguard: noWireguard, probeSilenceMs: defaultProbeSilenceMs },
  domain: {
    issuance: openIssuance,
    overlayPrefix: null,
    maintenance: { policy: maintenancePolicy, timeSync: null },
  },
  denial: { atMs: 0, reason: 'unspecified' },
  issuer: { compromisedAtMs: null },
}

/** A row as `SELECT key, version, doc` gives it, whichever plane has written it. */
export const decodeShared = <K extends RowKind>(kind: K, found: Record<string, unknown>): Row<RowTypes[K]> =>
  decodeRow(kind, found, lacking[kind])
