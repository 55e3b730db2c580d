// A plane whose nodes reach it only through fault proxies: it calls itself by an address that belongs to them.

import type { Scope } from './cleanup.ts'
import { startFaultProxy, type FaultProxy } from './fault-proxy.ts'
import { startPlane, type Plane, type PlaneOptions } from './start-plane.ts'

export type ProxiedPlane = {
  readonly plane: Plane
  /** Renewals, confirmations and channels. */
  readonly node: FaultProxy
  readonly recovery: FaultProxy
}

const listens = '127.0.0.1'
const named = '127.0.0.2'

export const startPlaneBehindProxies = async (t: Scope, options: PlaneOptions = {}): Promise<ProxiedPlane> => {
  const plane = await startPlane(t, { ...options, args: ['--server-name', named, ...(options.args ?? [])] })
  const before = (url: string): Promise<FaultProxy> => {
    const port = Number(new URL(url).port)
    return startFaultProxy(t, { host: listens, port }, { host: named, port })
  }
  return { plane, node: await before(plane.nodeUrl), recovery: await before(plane.recoveryUrl) }
}
