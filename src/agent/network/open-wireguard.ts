// The network of a node that starts: up from the disk, before the plane has been reached.

import type { AgentParts } from '#agent/core/agent-deps.ts'
import { noWireguard, openWireguard, type WireguardDeps, type WireguardNetwork } from './wireguard-network.ts'

type Opening = Omit<WireguardDeps, 'config'> & Pick<AgentParts, 'config' | 'lastConfig' | 'keeper'>

export const openWireguardFor = (deps: Opening): WireguardNetwork => {
  const { config, keeper, lastConfig } = deps
  const { wireguard } = config
  if (wireguard === null) return noWireguard
  const network = openWireguard({ ...deps, config: { ...config, wireguard } })
  if (keeper.credentials().identity !== null) network.configured(lastConfig.current()?.wireguard)
  return network
}
