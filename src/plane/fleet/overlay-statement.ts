// What the helper of a node may start for the overlay of its vCluster, said by the statement key: the same overlay that its agent is
// sent over the channel, by the digests of what is in it.

import { refuse } from '#domain/core/refusal.ts'
import { sha256Hex } from '#platform/bytes.ts'
import type { RecoveryAuthority } from '#plane/authority/recovery-authority.ts'
import { wantedOverlay } from '#plane/core/configuration.ts'
import type { Core } from '#plane/core/core.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { vclusterOf } from '#plane/core/programs-of-node.ts'
import { answer, serve, type Route } from '#plane/http/route.ts'
import type { OverlayStatement } from '#wire/core/overlay-statement.ts'
import { formatStatement } from '#wire/core/statement.ts'
import { checksCapability, termsCapability, type ConfigOverlay } from '#wire/fleet/overlay.ts'
import { definitionOfCheck, definitionOfService, textOfCheck, textOfService } from '#wire/fleet/overlay-definition.ts'
import { overlayStatementApi } from '#wire/fleet/overlay-statement-api.ts'

type OverlayStatementParts = {
  readonly recovery: Pick<RecoveryAuthority, 'signStatement'>
  readonly domainName: string
}

/** Agents that bring a statement to their helper know both. */
const offers: ReadonlySet<string> = new Set([termsCapability, checksCapability])

export const overlayStatementRoutes = (
  { store, clock }: Pick<Core, 'store' | 'clock'>,
  { recovery, domainName }: OverlayStatementParts,
): readonly Route[] =>
  serve(overlayStatementApi, {
    current: async ({ principal, body }) => {
      const node = await store.get('node', principal.id)
      // It was replaced while this call was under way: the certificate it came with is denied.
      if (node === null || node.value.epoch !== principal.epoch) return refuse('CLIENT_CERT_DENIED')
      const vcluster = (await vclusterOf(store, node.value))?.value ?? null
      const domain = await domainSettingsRow(store)
      // By the name that its certificate says: what is filled into a command is not what the row of the node says of itself.
      const named = { ...node.value, id: principal.id }
      const overlay = wantedOverlay({ node: named, vcluster, domain: domain.value, offers })
      const content: OverlayStatement = {
        ...{ domain: domainName, node: principal.id, epoch: principal.epoch },
        ...{ vcluster: vcluster?.name ?? null, vcluster_revision: overlay.vcluster_revision },
        ...signedParts(overlay),
        issued_ms: clock.nowMs(),
        nonce: body.nonce,
      }
      return answer({ statement: formatStatement('overlay', content, (bytes) => recovery.signStatement(bytes)) })
    },
  })

const signedParts = ({ services, checks = [] }: ConfigOverlay): Pick<OverlayStatement, 'services' | 'checks'> => ({
  services: services.map((service) => ({
    name: service.name,
    digest: sha256Hex(textOfService(definitionOfService(service))),
  })),
  checks: checks.map((check) => ({ name: check.name, digest: sha256Hex(textOfCheck(definitionOfCheck(check))) })),
})
