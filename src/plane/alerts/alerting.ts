// Alerts as one part: what raises them, what follows them, and where they are delivered to.

import { systemRootsAnd } from '#platform/post-once.ts'
import { openResolver } from '#platform/resolve-name.ts'
import { ConfigProblem } from '#plane/config/config.ts'
import type { Core } from '#plane/core/core.ts'
import { agingSource, clocksSource, withdrawnSource } from './alert-sources.ts'
import { followNodes } from './follow-nodes.ts'
import type { RefusedCall } from '#plane/core/record-refusal.ts'
import { reconcileSource, type AlertSource, type UnresolvedAlerts } from './reconcile-alerts.ts'
import { watchFailures } from './watch-failures.ts'
import type { Led } from '#plane/cluster/leading.ts'
import { startUpkeep } from '#plane/core/upkeep.ts'
import { callReceiver, type Receiver } from '#plane/webhook/call-receiver.ts'
import {
  deliverAlerts,
  type AlertDelivery,
  type CallWebhook,
  type DeliveryOutcome,
} from '#plane/webhook/deliver-alerts.ts'
import { readWebhookFiles } from '#plane/webhook/webhook-files.ts'
import type { WebhookTarget } from '#plane/webhook/webhook-target.ts'
import type { Authority, ServerIdentity } from '#plane/authority/authority.ts'

export type AlertingParts = {
  readonly authority: Authority
  /** What the listeners present now, by the listener's name. */
  readonly servers: () => Readonly<Record<string, ServerIdentity>>
  readonly alerts: UnresolvedAlerts
  readonly webhook: WebhookTarget | null
  readonly clockToleranceMs: number
  readonly domainName: string
  readonly onDelivery: (outcome: DeliveryOutcome) => void
}

export type Alerting = {
  onRefusal(call: RefusedCall): void
  /** What this source names is followed as well, by the replica that leads. */
  watch(source: AlertSource): void
  /** Changes of alerts that the webhook has not received; 0 while another replica delivers. */
  waitingDeliveries(): number
  /** Follows alerts and delivers them, while this replica leads. */
  lead(leading: Core): Led
  stop(): Promise<void>
}

export const openAlerting = (core: Core, parts: AlertingParts): Alerting => {
  const { authority, servers, alerts, clockToleranceMs, onDelivery } = parts
  // First: a webhook that cannot be used must not be found out about by its silence.
  const webhook = parts.webhook === null ? null : openReceiver(parts.webhook)
  const failures = watchFailures(core, alerts, parts.domainName)
  const watched: AlertSource[] = []
  let delivery: AlertDelivery | null = null
  return {
    onRefusal: (call) => failures.take(call),
    watch: (source) => void watched.push(source),
    waitingDeliveries: () => delivery?.waiting() ?? 0,
    lead(leading) {
      const follower = followNodes(leading, alerts)
      const aging = agingSource(core.clock, authority, servers)
      const others = [withdrawnSource(leading), clocksSource(core.store.replicas, clockToleranceMs)]
      const delivering = webhook === null ? null : startDelivery(leading, webhook, onDelivery)
      delivery = delivering
      const walked = follower
        .walk()
        // At once: a key that is gone must not wait for the first round.
        .then(() => reconcileSource(leading, alerts, aging))
        .catch((error: unknown) => core.log.error({ err: error }, 'not everything could be looked at for alerts'))
      const run = async (): Promise<void> => {
        await follower.again()
        await failures.sweep(leading)
        for (const source of [aging, ...others, ...watched]) await reconcileSource(leading, alerts, source)
      }
      const endUpkeep = startUpkeep(leading, [{ name: 'alerts', where: 'leader', everyMs: 10_000, run }])
      return {
        async stop() {
          endUpkeep()
          delivery = null
          await follower.stop()
          await walked
          await delivering?.stop()
        },
      }
    },
    async stop() {
      failures.stop()
      await failures.settled()
    },
  }
}

type OpenWebhook = { readonly receiver: Receiver; readonly secret: string }

const startDelivery = (
  core: Core,
  { receiver, secret }: OpenWebhook,
  onOutcome: (outcome: DeliveryOutcome) => void,
): AlertDelivery => {
  const calling = { timers: core.timers, resolve: openResolver(core.timers) }
  const call: CallWebhook = (message, signal) => callReceiver(calling, receiver, message, signal)
  return deliverAlerts(core, { secret, call, onOutcome })
}

const openReceiver = (target: WebhookTarget): OpenWebhook => {
  const files = readWebhookFiles(target)
  if (typeof files === 'string') throw new ConfigProblem(files)
  const { secret, ca } = files
  const { url, networks } = target
  return { receiver: { url, networks, roots: systemRootsAnd(ca === null ? [] : [ca]) }, secret }
}
