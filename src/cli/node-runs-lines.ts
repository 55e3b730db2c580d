// What a node runs, as lines of `node show`.

import type { NodeDetail } from '#wire/operator-api.ts'

type Overlay = NonNullable<NodeDetail['overlay']>

export const vclusterText = ({ vcluster, vcluster_revision: revision }: NodeDetail): string =>
  vcluster === null ? 'none (maintenance mode)' : `${vcluster}${revision === null ? '' : `, revision ${revision}`}`

/** Nothing is said of it as long as the agent has said nothing. */
export const overlayLines = (overlay: NodeDetail['overlay']): string[] =>
  overlay === null
    ? []
    : [
        overlay.applied
          ? `applied, configuration ${overlay.config_revision}`
          : `not applied: ${overlay.detail ?? 'its agent does not say why'}`,
        ...overlay.services.map(serviceLine),
      ]

const serviceLine = ({ name, state, restarts }: Overlay['services'][number]): string =>
  `service ${name} ${state}${restarts === 0 ? '' : `, restarted ${restarts === 1 ? 'once' : `${restarts} times`}`}`

export const driftLines = (overlay: NodeDetail['overlay']): string[] => overlay?.drift ?? []

export const capabilityLines = (capabilities: NodeDetail['capabilities']): string[] => {
  if (capabilities === null) return []
  const { kernel, services, wireguard, accelerators } = capabilities
  return [
    `kernel ${kernel}, services by ${services}, WireGuard ${wireguard}`,
    ...accelerators.map(({ device, count }) => `${count} x ${device}`),
  ]
}
