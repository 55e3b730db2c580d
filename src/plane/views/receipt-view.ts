import type { Withdrawn } from '#plane/flows/withdraw-identity.ts'
import { isoTime } from '#platform/clock.ts'
import type { Receipt } from '#wire/operator-api.ts'

export const receiptView = ({ node, certificates, channelsCut, unconfirmed, entry }: Withdrawn): Receipt => ({
  node: node.id,
  epoch: node.epoch,
  decided_at: isoTime(node.membership.sinceMs),
  certificates: [...certificates],
  channels_cut: channelsCut,
  replicas_unconfirmed: unconfirmed,
  journal: entry,
})
