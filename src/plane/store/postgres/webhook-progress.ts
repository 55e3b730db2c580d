// How far the webhook has come in the journal: one row, written beside the commits and never with them.

import type { Prepared } from '#platform/postgres.ts'
import type { ReplicaNumber } from '#plane/store/contract/replicas.ts'
import { Fenced } from '#plane/store/contract/store-errors.ts'
import type { Store, WebhookProgress } from '#plane/store/contract/store.ts'
import type { PgAccess } from './pg-access.ts'

export type PgWebhookProgress = Pick<Store, 'webhookProgress' | 'keepWebhookProgress'>

export const openPgWebhookProgress = (deps: {
  readonly access: Pick<PgAccess, 'read' | 'write'>
  self(): ReplicaNumber
}): PgWebhookProgress => ({
  async webhookProgress() {
    const { rows } = await deps.access.read(select)
    return rows[0] === undefined ? null : (JSON.parse(String(rows[0]['doc'])) as WebhookProgress)
  },
  async keepWebhookProgress(progress) {
    const { count } = await deps.access.write(upsert, [JSON.stringify(progress), deps.self()])
    if (count === 0) throw new Fenced('how far the webhook has come is written by the replica that leads')
  },
})

const select: Prepared = { name: 'webhook-progress', text: 'SELECT doc FROM webhook_progress WHERE id = 1' }

/** Under a lease of its own, and unless another replica leads under one. */
const upsert: Prepared = {
  name: 'keep-webhook-progress',
  text: `INSERT INTO webhook_progress (id, doc) SELECT 1, $1
    WHERE EXISTS (SELECT FROM replica WHERE number = $2 AND expires_at > clock_timestamp() FOR KEY SHARE)
      AND NOT EXISTS (SELECT FROM leadership JOIN replica ON replica.number = leadership.replica
        WHERE leadership.replica <> $2 AND replica.expires_at > clock_timestamp())
    ON CONFLICT (id) DO UPDATE SET doc = excluded.doc`,
}
