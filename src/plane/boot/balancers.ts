// The load balancers a plane is behind, and what is logged of those that do not name the source of a connection.

import type { Network } from '#platform/ip-address.ts'
import { coalesced } from '#platform/coalesced-log.ts'
import type { Balancers } from '#platform/proxied-server.ts'
import { isBalancer } from '#plane/config/proxy-from.ts'
import type { Core } from '#plane/core/core.ts'
import type { Metrics } from '#plane/metrics/open-metrics.ts'

/** Null: the plane is behind none. */
export const openBalancers = (
  core: Pick<Core, 'clock' | 'timers' | 'log'>,
  networks: readonly Network[],
  metrics: Pick<Metrics, 'unproxied'>,
): Balancers | null => {
  if (networks.length === 0) return null
  // A balancer set up without the protocol fails with every connection: a line a minute says as much.
  const { log } = coalesced(core)
  return {
    has: (address) => isBalancer(networks, address),
    refused(trouble, from, why) {
      metrics.unproxied(trouble)
      // A balancer that connects and hangs up makes a health check.
      if (trouble === 'unread') log.debug({ from, why }, 'a load balancer hung up before its header')
      else log.warn({ code: trouble, from, why }, 'a load balancer did not say whose connection it passes on: closed')
    },
  }
}
