// What the main thread and a thread that speaks TLS say to each other, one list of messages at a time. Bytes travel as text of
// one byte a character: a string is copied faster than a buffer is handed over.

import type { HeaderTrouble } from './proxied-server.ts'
import type { TlsServerOptions } from './tls-server.ts'
import type { UnreadLimits } from './unread-budget.ts'

export type FromTlsThread = ThreadNews | ConnectionNews

export type ThreadNews =
  | readonly ['listening', port: number]
  | readonly ['not listening', code: string | null, message: string]
  /** One more has come than there may be, and was closed. */
  | readonly ['full']

/** `id` names a connection; no two connections of a process have the same. */
export type ConnectionNews =
  /** Accepted. Nothing is done with what it sends before `read header` or `begin`. */
  | readonly ['opened', id: number, address: string, port: number]
  /** Null: the balancer itself has called. */
  | readonly ['header', id: number, caller: string | null]
  | readonly ['no header', id: number, trouble: HeaderTrouble, why: string]
  /** The handshake is done. DER of what the client presented; null: nothing. */
  | readonly ['secured', id: number, certificate: string | null]
  | readonly ['failed', id: number, why: string]
  | readonly ['received', id: number, bytes: string]
  | readonly ['ended', id: number]
  /** What `write` gave is in the hands of the kernel; behind `finish`, all of it. */
  | readonly ['written', id: number]
  | readonly ['closed', id: number, bytesRead: number]

export type ToTlsThread = ThreadOrder | ConnectionOrder

export type ThreadOrder =
  | readonly ['listen', host: string, port: number, shared: boolean]
  | readonly ['identity', options: TlsServerOptions]
  | readonly ['stop listening']

export type ConnectionOrder =
  | readonly ['read header', id: number]
  | readonly ['begin', id: number]
  | readonly ['write', id: number, text: string, encoding: BufferEncoding]
  | readonly ['finish', id: number]
  | readonly ['destroy', id: number]
  /** Of what was received, so much has been read, by `costOf`. */
  | readonly ['read', id: number, cost: number]

/** Acknowledged in portions of so much: most callers send less in all, and never wait for it. */
export const acknowledgeFrom = 16 * 1024

/**
 * What is received and not read by the main thread. What is not acknowledged yet counts as unread, so that so much of each
 * connection has to be free: a connection that waits is always acknowledged once it has been read.
 */
export const unreadLimits = (threads: number): UnreadLimits => ({
  perConnection: 64 * 1024,
  free: acknowledgeFrom,
  inAll: (32 * 1024 * 1024) / threads,
})

/** A message costs memory also where it carries one byte, and a peer chooses the size of its TLS records. */
export const costOf = (bytes: { readonly length: number }): number => bytes.length + 256

export type TlsThreadStart = {
  readonly options: TlsServerOptions
  /** The most connections of all threads together. */
  readonly connections: number
  /** How many there are: counted by a thread that accepts one, and discounted by the main thread when it has read of its end. */
  readonly count: Int32Array
  /** The first id, and the distance from one to the next, which is the number of threads: each counts for itself. */
  readonly firstId: number
  readonly idStep: number
}
