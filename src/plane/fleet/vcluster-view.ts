import type { Static } from 'typebox'
import type { Overlay, Service } from '#domain/fleet/overlay.ts'
import type { Policy } from '#domain/fleet/policy.ts'
import type { VCluster } from '#domain/fleet/vcluster.ts'
import { isoTime } from '#platform/clock.ts'
import type { OverlayBody, ServiceBody } from '#wire/fleet/overlay.ts'
import type { PolicyBody } from '#wire/fleet/policy-body.ts'
import type { VClusterBody, VClusterListAnswer } from '#wire/fleet/vcluster-api.ts'

export const vclusterView = (vcluster: VCluster): VClusterBody => ({
  ...headOf(vcluster),
  policy: policyView(vcluster.policy),
  overlay: overlayView(vcluster.overlay),
})

export const vclusterLine = (vcluster: VCluster): Static<typeof VClusterListAnswer>['vclusters'][number] => ({
  ...headOf(vcluster),
  enforcement_mode: vcluster.policy.enforcementMode,
  files: vcluster.overlay.files.length,
  services: vcluster.overlay.services.map(({ name }) => name),
})

const headOf = ({ name, description, peering, closed, revision, createdAtMs, createdBy }: VCluster) => ({
  ...{ name, description, peering, closed, revision },
  created_at: isoTime(createdAtMs),
  created_by: createdBy,
})

export const policyView = (policy: Policy): Static<typeof PolicyBody> => ({
  ...policy,
  execWhitelist: [...policy.execWhitelist],
  shellWhitelist: [...policy.shellWhitelist],
})

const overlayView = ({ files, services }: Overlay): Static<typeof OverlayBody> => ({
  files: files.map((file) => ({ ...file })),
  services: services.map(serviceView),
})

export const serviceView = ({ name, command }: Service): Static<typeof ServiceBody> => ({ name, command: [...command] })
