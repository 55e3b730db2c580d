// Whether a request is one for a channel. Asked before anything else, so that the WebSocket library never has to refuse
// in its own words.

import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { IncomingMessage } from '#platform/tls-server.ts'
import { channelProtocol } from '#wire/channel/channel.ts'

const keyShape = /^[+/0-9A-Za-z]{22}==$/

export const judgeUpgrade = ({ method, headers }: Pick<IncomingMessage, 'method' | 'headers'>): Refusal | null => {
  if (method !== 'GET') return refuse('METHOD_NOT_ALLOWED', 'it takes GET')
  if ((headers.upgrade ?? '').toLowerCase() !== 'websocket') return refuse('REQUEST_INVALID', 'send Upgrade: websocket')
  if (headers['sec-websocket-version'] !== '13') return refuse('REQUEST_INVALID', 'send Sec-WebSocket-Version: 13')
  if (!keyShape.test(headers['sec-websocket-key'] ?? '')) return refuse('REQUEST_INVALID', 'no Sec-WebSocket-Key')
  const offered = (headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim())
  return offered.includes(channelProtocol)
    ? null
    : refuse('REQUEST_INVALID', `offer the subprotocol ${channelProtocol} (Sec-WebSocket-Protocol)`)
}
