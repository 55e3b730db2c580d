// One attempt: resolve, vet, connect to what was vetted. The name is resolved once an attempt and the connection goes to
// that very address, so an answer of DNS that changes in between leads nowhere.

import { isIP, type Resolve } from '#platform/resolve-name.ts'
import { errno } from '#platform/files.ts'
import { postOnce } from '#platform/post-once.ts'
import type { Timers } from '#platform/timers.ts'
import type { Attempt } from './delivery-window.ts'
import { mayBeCalled } from './webhook-address.ts'
import type { WebhookMessage } from './webhook-message.ts'
import { hostOf, type WebhookTarget } from './webhook-target.ts'

export type Receiver = Pick<WebhookTarget, 'url' | 'networks'> & { readonly roots: readonly string[] }

/** `why`: a status or a code, never text of the response. */
export type AttemptMade = { readonly attempt: Attempt; readonly why: string }

const timeoutMs = 10_000
/** A name may have several addresses of which this machine reaches only some. */
const mostAddresses = 4
const notReached: readonly string[] = ['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'EADDRNOTAVAIL', 'ETIMEDOUT']

export const callReceiver = async (
  { timers, resolve }: { readonly timers: Timers; readonly resolve: Resolve },
  receiver: Receiver,
  message: WebhookMessage,
  signal: AbortSignal,
): Promise<AttemptMade> => {
  let why = 'ADDRESS_NOT_ALLOWED'
  try {
    for (const address of await vettedAddresses(resolve, receiver, signal)) {
      const status = await postTo(timers, receiver, address, message, signal).catch((error: unknown) => {
        why = errno(error) ?? 'FAILED'
        return null
      })
      if (status !== null) return judge(status)
      if (!notReached.includes(why) || signal.aborted) break
    }
  } catch (error) {
    why = errno(error) ?? 'FAILED'
  }
  return { attempt: 'trouble', why }
}

const vettedAddresses = async (
  resolve: Resolve,
  { url, networks }: Receiver,
  signal: AbortSignal,
): Promise<readonly string[]> => {
  const host = hostOf(url)
  const addresses = isIP(host) ? [host] : await resolve(host, signal)
  return addresses.filter((address) => mayBeCalled(address, networks)).slice(0, mostAddresses)
}

const postTo = (
  timers: Timers,
  { url, roots }: Receiver,
  address: string,
  message: WebhookMessage,
  signal: AbortSignal,
): Promise<number> => {
  const encrypted = url.protocol === 'https:'
  const target = {
    address,
    port: url.port === '' ? (encrypted ? 443 : 80) : Number(url.port),
    host: hostOf(url),
    authority: url.host,
    tls: encrypted ? { roots } : null,
    path: url.pathname + url.search,
  }
  return postOnce(timers, target, { ...message, timeoutMs }, signal)
}

/** A redirect is not followed: the operator did not choose its target. */
const judge = (status: number): AttemptMade => {
  const why = `HTTP ${status}`
  if (status >= 200 && status < 300) return { attempt: 'delivered', why }
  const aboutTheMessage = status >= 400 && status < 500 && status !== 408 && status !== 429
  return { attempt: aboutTheMessage ? 'refused' : 'trouble', why }
}
