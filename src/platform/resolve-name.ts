// Names to addresses, as the system resolves them: /etc/hosts, DNS, whatever it is set up for.

import * as dns from 'node:dns/promises'
import * as net from 'node:net'
import type { Timers } from './timers.ts'

/** An IPv4 or IPv6 address, as opposed to a name. */
export const isIP = (text: string): boolean => net.isIP(text) !== 0

/** In the system's order, at least one. Rejects with an error that has a `code`: ENOTFOUND, EAI_AGAIN, ... */
export type Resolve = (name: string, signal: AbortSignal) => Promise<readonly string[]>

const withinMs = 5_000

/** A name that is being asked for already is not asked for again: each question holds a thread of the process. */
export const openResolver = (timers: Timers): Resolve => {
  const open = new Map<string, Promise<readonly string[]>>()
  return (name, signal) => {
    const asked = open.get(name) ?? lookup(name).finally(() => open.delete(name))
    open.set(name, asked)
    return inTime(timers, asked, signal)
  }
}

const lookup = async (name: string): Promise<readonly string[]> => {
  const found = await dns.lookup(name, { all: true, order: 'verbatim' })
  if (found.length === 0) throw Object.assign(new Error(`${name} has no address`), { code: 'ENODATA' })
  return [...new Set(found.map(({ address }) => address))]
}

const inTime = <T>(timers: Timers, asked: Promise<T>, signal: AbortSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    const fail = (code: string, message: string): void => reject(Object.assign(new Error(message), { code }))
    const stop = (): void => fail('ABORT_ERR', 'stopped')
    const cancel = timers.after(
      withinMs,
      () => fail('EAI_AGAIN', 'no answer of the name service in time'),
      'background',
    )
    signal.addEventListener('abort', stop)
    void asked.then(resolve, reject).finally(() => {
      cancel()
      signal.removeEventListener('abort', stop)
    })
    if (signal.aborted) stop()
  })
