// Delivers every change of an alert to a webhook: at least once, each alert's changes in their order, over one connection
// at a time. The journal is the outbox; what has been dealt with is remembered in the store, so a restart goes on where
// it was, and a receiver drops what it was sent twice by its delivery id.

import { alertKey } from '#domain/alerts/alert.ts'
import type { AlertKind } from '#domain/alerts/alert-kinds.ts'
import type { Core } from '#plane/core/core.ts'
import type { Store, WebhookProgress } from '#plane/store/contract/store.ts'
import type { AttemptMade } from './call-receiver.ts'
import {
  isGivenUp,
  isOldNews,
  newDelivery,
  nextDelivery,
  progressOf,
  waitMs,
  type Delivery,
} from './delivery-window.ts'
import { alertEntryTypes, webhookMessage, type WebhookMessage } from './webhook-message.ts'

export type CallWebhook = (message: WebhookMessage, signal: AbortSignal) => Promise<AttemptMade>

type DeliveryCore = Omit<Core, 'random'>

type Webhook = {
  readonly secret: string
  readonly call: CallWebhook
  readonly onOutcome: (outcome: DeliveryOutcome) => void
}

export const deliveryOutcomes = ['delivered', 'failed', 'given_up'] as const
export type DeliveryOutcome = (typeof deliveryOutcomes)[number]

export type AlertDelivery = {
  /** Changes of alerts that are known of and have not been dealt with. */
  waiting(): number
  /** Ends what is under way; it is tried again at the next start. */
  stop(): Promise<void>
}

const windowSize = 500
/** After trouble with the store. */
const againMs = 10_000

export const deliverAlerts = (core: DeliveryCore, { secret, call, onOutcome }: Webhook): AlertDelivery => {
  const stopping = new AbortController()
  const news = openNews(core)
  let window: Delivery[] = []
  let read: WebhookProgress['after'] = null
  let done: WebhookProgress | null = null
  let pausedUntilMs = 0
  let failuresInARow = 0

  const replace = (before: Delivery, changes: Partial<Delivery>): void => {
    window = window.map((one) => (one.stored === before.stored ? { ...one, ...changes } : one))
  }
  const keepProgress = async (): Promise<void> => {
    const progress = progressOf(done?.after ?? null, window)
    await core.store.keepWebhookProgress(progress)
    done = progress
    const open = window.findIndex(({ settled }) => !settled)
    window = open === -1 ? [] : window.slice(open)
  }
  const fill = async (): Promise<void> => {
    done ??= await begin()
    const { settled } = done
    while (window.length < windowSize && !stopping.signal.aborted) {
      const limit = windowSize - window.length
      const entries = await core.store.journal.read({
        after: read,
        last: null,
        limit,
        node: null,
        type: alertEntryTypes,
      })
      const nowMs = core.clock.monotonicMs()
      const fresh = entries.map((stored) => newDelivery(stored, nowMs, settled.includes(stored.entry.operation)))
      window = [...window, ...fresh]
      read = entries.at(-1)?.cursor ?? read
      await dropOld()
      if (entries.length === 0) return
    }
  }
  const begin = async (): Promise<WebhookProgress> => {
    const progress = (await core.store.webhookProgress()) ?? { after: null, settled: [] }
    read = progress.after
    return progress
  }
  const dropOld = async (): Promise<void> => {
    let oldNews = 0
    let givenUp = 0
    for (const delivery of window.filter(({ settled }) => !settled)) {
      if (isGivenUp(delivery, core.clock.monotonicMs())) {
        givenUp++
        onOutcome('given_up')
        core.log.error(whichOf(delivery), 'an alert was not delivered to the webhook and is given up')
      } else if (isOldNews(delivery, core.clock.nowMs()) && (await isOver(core.store, delivery))) oldNews++
      else continue
      replace(delivery, { settled: true })
    }
    // A webhook that is new, or was off, does not get old alerts.
    if (oldNews > 0) core.log.info({ count: oldNews }, 'changes of alerts that are over by now are not delivered')
    if (oldNews + givenUp > 0) await keepProgress()
  }

  const attempt = async (delivery: Delivery): Promise<void> => {
    const message = webhookMessage(delivery.stored.entry, secret, core.clock.nowMs())
    const made = await call(message, stopping.signal)
    if (stopping.signal.aborted && made.attempt !== 'delivered') return
    if (made.attempt === 'delivered') {
      if (failuresInARow > 0) core.log.info('the webhook takes alerts again')
      failuresInARow = 0
      replace(delivery, { settled: true })
      onOutcome('delivered')
      return keepProgress()
    }
    onOutcome('failed')
    const attempts = delivery.attempts + 1
    const nowMs = core.clock.monotonicMs()
    if (made.attempt === 'refused') {
      if (attempts === 1) core.log.warn({ ...whichOf(delivery), why: made.why }, 'the webhook refused an alert')
      return replace(delivery, { attempts, notBeforeMs: nowMs + waitMs(attempts) })
    }
    failuresInARow++
    if (failuresInARow === 1) core.log.warn({ why: made.why }, 'the webhook cannot be reached; alerts wait for it')
    pausedUntilMs = nowMs + waitMs(failuresInARow)
    replace(delivery, { attempts })
  }

  const step = async (): Promise<void> => {
    await fill()
    await dropOld()
    const nowMs = core.clock.monotonicMs()
    if (nowMs < pausedUntilMs) return news.within(pausedUntilMs - nowMs, 'even if there is news')
    const next = nextDelivery(window, nowMs)
    if (next.due !== null) return attempt(next.due)
    await news.within(next.waitMs, 'or until there is news')
  }
  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      await step().catch(async (error: unknown) => {
        core.log.warn({ err: error }, 'alerts could not be delivered; they are tried again')
        await news.within(againMs, 'even if there is news')
      })
    }
  }
  const running = run()

  return {
    waiting: () => window.filter(({ settled }) => !settled).length,
    async stop() {
      stopping.abort()
      news.close()
      await running
    },
  }
}

const whichOf = ({ stored }: Delivery): object => {
  const { alert, kind, subject, state } = stored.entry.body
  return { alert, kind, subject, state }
}

/** Another raising has taken its place, or it was resolved. */
const isOver = async (store: Pick<Store, 'get'>, { stored }: Delivery): Promise<boolean> => {
  const { alert, kind, subject } = stored.entry.body
  const now = await store.get('alert', alertKey({ kind: kind as AlertKind, subject: String(subject) }))
  return now === null || now.value.id !== alert || now.value.state.kind === 'resolved'
}

/** Waiting for time to pass, or for something new in the journal, which may have come since it was read. */
const openNews = ({ feed, timers }: DeliveryCore) => {
  let isNew = false
  let closed = false
  let wake: () => void = () => {}
  const types: readonly string[] = alertEntryTypes
  const unsubscribe = feed.subscribe('alert delivery', ({ entries }) => {
    if (!entries.some(({ entry }) => types.includes(entry.type))) return
    isNew = true
    wake()
  })
  return {
    /** `ms` null: until there is a change. */
    async within(ms: number | null, heed: 'or until there is news' | 'even if there is news'): Promise<void> {
      const hearsNews = heed === 'or until there is news'
      if (closed || (hearsNews && isNew)) return void (isNew = false)
      const { promise, resolve } = Promise.withResolvers<void>()
      wake = () => {
        if (closed || hearsNews) resolve()
      }
      const cancel = ms === null ? () => {} : timers.after(ms, resolve)
      await promise
      cancel()
      wake = () => {}
      if (hearsNews) isNew = false
    },
    close(): void {
      closed = true
      unsubscribe()
      wake()
    },
  }
}
