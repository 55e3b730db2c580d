// The operator listener as one part: its routes, who may use them, what is remembered of refusals, and its doors.

import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { Refusal } from '#domain/core/refusal.ts'
import { recordCounted } from '#plane/core/record-refusal.ts'
import { recordOperatorRefusal } from '#plane/core/record-operator-refusal.ts'
import { openCallerBudget } from '#plane/limits/caller-budget.ts'
import { openArrivals } from '#plane/core/arrivals.ts'
import { limitGuesses } from '#plane/authn/guessed-keys.ts'
import { openOperatorAuthn } from '#plane/authn/operator-key.ts'
import type { UnresolvedAlerts } from '#plane/alerts/reconcile-alerts.ts'
import { damageInWords } from '#plane/journal/journal-watch.ts'
import { httpApp } from '#plane/http/http-app.ts'
import { troubleOf, type Refused } from '#plane/http/http-reply.ts'
import { openOperatorListener, type OperatorDoors, type OperatorListener } from '#plane/http/operator-listener.ts'
import { operatorRoutes, type OperatorRouteParts } from './operator-routes.ts'
import { everyListener } from '#wire/listeners.ts'
import type { Metrics } from '#plane/metrics/open-metrics.ts'
import { openApiDocument } from '#plane/http/openapi.ts'
import { notReady, readyBut } from './readiness.ts'
import type { TurnedAway } from './turned-away.ts'
import type { Balancers } from '#platform/proxied-server.ts'
import type { Core } from '#plane/core/core.ts'

export type OperatorServerParts = {
  /** What operators call. */
  readonly called: OperatorRouteParts
  readonly metrics: Metrics
  readonly settings: () => DomainSettings
  readonly alerts: Pick<UnresolvedAlerts, 'all'>
  readonly version: string
  readonly correlation: () => string
  readonly balancers: Balancers | null
  readonly turnedAway: TurnedAway
  /** Further reasons why the plane is not ready; empty where there are none. */
  readonly unready: () => readonly string[]
  /** What speaks against this machine's clock. */
  readonly clockWarnings: () => readonly string[]
}

const connectionsPerDoor = 512
/** Followers of the journal each hold a connection. */
const mostFollowers = 64
/** Refusals that are journaled; beyond them they are counted. One source gets a quarter. */
const journaledRefusals = { perMinute: 100, perMinutePerSource: 25 }
const minute = 60_000

export const openOperatorServer = async (
  core: Core,
  parts: OperatorServerParts,
  doors: OperatorDoors,
): Promise<OperatorListener> => {
  const { store, feed, clock, timers, log } = core
  const { called, metrics, turnedAway, settings, alerts } = parts
  const { authority, cutOffs, keyBook, taskSigners } = called
  const budget = () => openCallerBudget(clock, () => journaledRefusals)
  const arrivals = openArrivals(feed, timers, mostFollowers)
  const health = {
    notReady: () => notReady({ store, authority, clock, alsoUnready: parts.unready }),
    warnings: () => [
      ...readyBut(settings(), authority.lost(), store),
      ...damageInWords(alerts),
      ...parts.clockWarnings(),
      ...cutOffs.warnings(),
      ...taskSigners.warnings(),
    ],
    metrics: () => metrics.text(),
    nodeMetrics: metrics.nodes.text,
    openapi: () => openApiDocument(parts.version, everyListener),
  }
  const routes = operatorRoutes(core, called, { arrivals, health })
  const budgets = { anonymousBudget: budget(), authenticatedBudget: budget() }
  const onRefusal = (refused: Refused): void => {
    metrics.refused(refused.refusal.code)
    recordOperatorRefusal(core, budgets, refused).catch((error: unknown) =>
      log.error({ err: error }, 'a refusal could not be journaled'),
    )
  }
  const authenticate = limitGuesses(openOperatorAuthn(store, keyBook, clock, feed).byKey, clock)
  const app = httpApp({
    routes,
    authenticate: (request, source, { cutOff }) => authenticate(request.headers.authorization, source, cutOff === true),
    correlation: parts.correlation,
    trouble: () => troubleOf(store),
    callers: 'operators',
    standing: () => store.replicas.standing(),
    onRefusal,
    onAborted(source, principal) {
      turnedAway.aborted('operator', source)
      ;(principal?.kind === 'operator' ? budgets.authenticatedBudget : budgets.anonymousBudget).charge(source)
    },
    log,
  })
  const stopCounting = timers.every(minute, () => {
    recordCounted(core, budgets).catch((error: unknown) => log.error({ err: error }, 'refusals could not be counted'))
  })
  const beforeStop = (): void => {
    stopCounting()
    arrivals.close()
  }
  const onTurnedAway = ({ code }: Refusal): void => metrics.refused(code)
  const limits = turnedAway.limits('operator', { connections: connectionsPerDoor, perCaller: null })
  return openOperatorListener(
    { app, authority, timers, limits, balancers: parts.balancers, onTurnedAway, beforeStop },
    doors,
  )
}
