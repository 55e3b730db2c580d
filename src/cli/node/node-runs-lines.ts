// What a node runs, as lines of `node show`.

import type { NodeDetail } from '#wire/node/node-api.ts'

type Overlay = NonNullable<NodeDetail['overlay']>

export const vclusterText = ({ vcluster, vcluster_revision: revision }: NodeDetail): string =>
  vcluster === null ? 'none (maintenance mode)' : `${vcluster}${revision === null ? '' : `, revision ${revision}`}`

/** What is true of more than the state: a node that drains has no other reason. */
export const schedulingText = ({ state, reasons }: NodeDetail['scheduling']): string =>
  [state, ...reasons.filter((reason) => reason !== state)].join(', ')

/** Of an identity that was taken away, or is not there yet, the last report says nothing about any machine. */
const isGone = ({ membership }: NodeDetail): boolean => membership === 'revoked' || membership === 'registered'

/** An agent that is connected and says nothing of it, or to a replica that would not hear it, is one of before. Nobody else tells. */
export const overlayLines = (node: NodeDetail): string[] => {
  const { overlay, vcluster, sessions } = node
  if (isGone(node)) return []
  if (overlay === null) {
    return vcluster === null || sessions.length === 0
      ? []
      : ['not known: nothing was said of it; an agent or a plane of the release before?']
  }
  return [
    ...(sessions.length === 0 ? ['what it said last, while it was connected:'] : []),
    overlay.applied
      ? `applied, configuration ${overlay.config_revision}`
      : `not applied: ${overlay.detail ?? 'its agent does not say why'}`,
    ...overlay.services.map(serviceLine),
  ]
}

const serviceLine = ({ name, state, restarts }: Overlay['services'][number]): string =>
  `service ${name} ${state}${restarts === 0 ? '' : `, restarted ${restarts === 1 ? 'once' : `${restarts} times`}`}`

export const driftLines = (node: NodeDetail): string[] => (isGone(node) ? [] : (node.overlay?.drift ?? []))

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
