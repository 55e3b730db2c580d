// What a node runs, as lines of `node show`.

import type { NodeDetail } from '#wire/operator-api.ts'

type Overlay = NonNullable<NodeDetail['overlay']>

export const vclusterText = ({ vcluster, vcluster_revision: revision }: NodeDetail): string =>
  vcluster === null ? 'none (maintenance mode)' : `${vcluster}${revision === null ? '' : `, revision ${revision}`}`

/** What is true of more than the state: a node that drains has no other reason. */
export const schedulingText = ({ state, reasons }: NodeDetail['scheduling']): string =>
  [state, ...reasons.filter((reason) => reason !== state)].join(', ')

/** An agent that is connected and says nothing of it, or to a replica that would not hear it, is one of before. Nobody else tells. */
export const overlayLines = ({ overlay, vcluster, sessions }: NodeDetail): string[] => {
  if (overlay === null) {
    return vcluster === null || sessions.length === 0
      ? []
      : ['not known: nothing was said of it; an agent or a plane of the release before?']
  }
  return [
    overlay.applied
      ? `applied, configuration ${overlay.config_revision}`
      : `not applied: ${overlay.detail ?? 'its agent does not say why'}`,
    ...overlay.services.map(serviceLine),
  ]
}

const serviceLine = ({ name, state, restarts }: Overlay['services'][number]): string =>
  `service ${name} ${state}${restarts === 0 ? '' : `, restarted ${restarts === 1 ? 'once' : `${restarts} times`}`}`

export const driftLines = (overlay: NodeDetail['overlay']): string[] => overlay?.drift ?? []

const runBy: Readonly<Record<NonNullable<NodeDetail['capabilities']>['services'], string>> = {
  systemd: 'by systemd',
  supervised: 'as children of its agent',
}

export const capabilityLines = (capabilities: NodeDetail['capabilities']): string[] => {
  if (capabilities === null) return []
  const { kernel, services, wireguard, accelerators } = capabilities
  return [
    `kernel ${kernel}, services ${runBy[services]}, WireGuard ${wireguard}`,
    ...accelerators.map(({ device, count }) => `${count} x ${device}`),
  ]
}
