// Where a plane listens: whether its ports are free, how its connections are shared out, and how its addresses are written.

import { holdPort, type HeldPort } from '#platform/http-server.ts'
import { listenersOf, nodeUrlOf, type PlaneConfig } from '#plane/config/config.ts'

/** Found out before a domain is made, so that a first start that fails leaves nothing behind. All are held at once, as they will be. */
export const refuseTakenPorts = async (config: PlaneConfig): Promise<void> => {
  if (config.replica !== null) return
  const held: HeldPort[] = []
  try {
    for (const { listen } of listenersOf(config)) held.push(await holdPort(listen.host, listen.port))
  } finally {
    for (const port of held) await port.release()
  }
}

/** Files kept free of connections: the store, logs, the operator listener. */
const filesForOthers = 256

/** Recovery is one call and gone, where a channel stays: an eighth of the connections is plenty for it. */
export const connectionShares = (files: number): { readonly node: number; readonly recovery: number } => {
  const free = Math.max(128, files - filesForOthers)
  const recovery = Math.max(64, Math.floor(free / 8))
  return { node: free - recovery, recovery }
}

export const urlOf = (host: string, port: number): string => `http://${host.includes(':') ? `[${host}]` : host}:${port}`

/** An address is of no use to a client that verifies names, unless the certificate names it. */
export const byServerName = (config: PlaneConfig, url: string): string => {
  const { hostname, port } = new URL(url)
  return config.serverNames.includes(hostname) ? url : nodeUrlOf(config, Number(port))
}
