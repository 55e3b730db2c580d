// What a plane signs for the helper of a host about the overlay of its node, right or changed, and what an agent shows along with it.

import { sha256Hex } from '#platform/bytes.ts'
import type { PrivateKey } from '#pki/keys.ts'
import type { OverlayStatement } from '#wire/core/overlay-statement.ts'
import { formatStatement } from '#wire/core/statement.ts'
import {
  textOfCheck,
  textOfService,
  type CheckDefinition,
  type ServiceDefinition,
} from '#wire/fleet/overlay-definition.ts'
import { thisNode } from './host-of-programs.ts'

export const overlayPlace = '/var/lib/muster-agent/overlay/current'

export const serviceNamed = (name: string, change: Partial<ServiceDefinition> = {}): ServiceDefinition => ({
  name,
  command: ['/usr/bin/app'],
  terms: null,
  ...change,
})

export const signedService = (definition: ServiceDefinition): OverlayStatement['services'][number] => ({
  name: definition.name,
  digest: sha256Hex(textOfService(definition)),
})

export const signedCheck = (definition: CheckDefinition): OverlayStatement['checks'][number] => ({
  name: definition.name,
  digest: sha256Hex(textOfCheck(definition)),
})

export const shown = <D>(definition: D): { definition: D; folder: string } => ({ definition, folder: overlayPlace })

export const overlayStatement = (
  key: PrivateKey,
  change: Partial<OverlayStatement> & Pick<OverlayStatement, 'nonce'>,
): string =>
  formatStatement(
    'overlay',
    {
      ...{ domain: thisNode.domain, node: thisNode.id, epoch: 3, vcluster: 'training', vcluster_revision: 7 },
      ...{ services: [], checks: [], issued_ms: Date.UTC(2027, 0, 1) },
      ...change,
    },
    (bytes) => key.sign(bytes),
  )
