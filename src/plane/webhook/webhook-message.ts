// What a receiver is sent. The body is made of an entry of the journal, field by field: text from nodes is a value in it
// and nothing else. The signature covers the time, so that a recorded delivery cannot be sent again later.

import { createHmac } from 'node:crypto'
import type { JournalEntry } from '#domain/core/journal-entry.ts'
import { isoTime } from '#platform/clock.ts'

export const alertEntryTypes = ['alert.raised', 'alert.acknowledged', 'alert.resolved'] as const

export type WebhookMessage = { readonly headers: Readonly<Record<string, string>>; readonly body: string }

export const webhookMessage = (entry: JournalEntry, secret: string, nowMs: number): WebhookMessage => {
  const { alert, kind, severity, subject, state, since, reason } = entry.body
  const body = JSON.stringify({
    id: alert,
    kind,
    severity,
    node: entry.node,
    subject,
    state,
    since,
    reason,
    domain: entry.domain,
    plane_time: isoTime(nowMs),
  })
  return {
    body,
    headers: {
      'content-type': 'application/json',
      // Unique for every change of an alert, and the same however often it is sent.
      'muster-delivery': entry.operation,
      'muster-signature': webhookSignature(secret, Math.floor(nowMs / 1000), body),
    },
  }
}

export const webhookSignature = (secret: string, unixSeconds: number, body: string): string => {
  const mac = createHmac('sha256', secret).update(`${unixSeconds}.${body}`).digest('hex')
  return `t=${unixSeconds},v1=${mac}`
}
