// Two rows that are written beside the commits and never with them: how far the webhook has come in the journal, and for
// how long replicas have led on this store.

import { StaleReplica } from '#plane/store/contract/store-errors.ts'
import type { Store, WebhookProgress } from '#plane/store/contract/store.ts'
import type { LeaderStatement, Sql, SqlStatement } from './sql.ts'

export type Progress = Pick<Store, 'webhookProgress' | 'keepWebhookProgress' | 'lived' | 'addLived'>

export const openProgress = (sql: Sql): Progress => ({
  async webhookProgress() {
    const [row] = await sql.read(selectWebhook)
    return row === undefined ? null : (JSON.parse(String(row['doc'])) as WebhookProgress)
  },
  async keepWebhookProgress(progress) {
    const count = await sql.writeAsLeader(keepWebhook, [JSON.stringify(progress)])
    if (count === 0) throw new StaleReplica('how far the webhook has come is written by the replica that leads')
  },
  async lived() {
    const [row] = await sql.read(selectLived)
    return Number(row?.['ms'] ?? 0)
  },
  async addLived(ms) {
    const count = await sql.writeAsLeader(addLived, [Math.floor(ms)])
    if (count === 0) throw new StaleReplica('how long planes have led is written by the one that leads')
  },
})

const selectWebhook: SqlStatement = {
  name: 'webhook-progress',
  text: 'SELECT doc FROM webhook_progress WHERE id = 1',
}
const keepWebhook: LeaderStatement = {
  name: 'keep-webhook-progress',
  text: (ifLeader) => `INSERT INTO webhook_progress (id, doc) SELECT 1, $1 WHERE ${ifLeader}
    ON CONFLICT (id) DO UPDATE SET doc = excluded.doc`,
}
const selectLived: SqlStatement = { name: 'lived', text: 'SELECT ms FROM lived WHERE id = 1' }
/** Two replicas that lead at once would count the same hour twice. */
const addLived: LeaderStatement = {
  name: 'add-lived',
  text: (ifLeader) => `UPDATE lived SET ms = ms + $1 WHERE id = 1 AND ${ifLeader}`,
}
