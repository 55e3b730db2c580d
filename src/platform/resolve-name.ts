// Names to addresses, as the system resolves them: /etc/hosts, DNS, whatever it is set up for.

import * as dns from 'node:dns/promises'
import type { Timers } from './timers.ts'

/** In the system's order, at least one. Rejects with an error that has a `code`: ENOTFOUND, EAI_AGAIN, ... */
export type Resolve = (name: string) => Promise<readonly string[]>

const withinMs = 5_000

/** A name that is being asked for already is not asked for again: each question holds a thread of the process. */
export const openResolver = (timers: Timers): Resolve => {
  const open = new Map<string, Promise<readonly string[]>>()
  return (name) => {
    const asked = open.get(name) ?? lookup(name).finally(() => open.delete(name))
    open.set(name, asked)
    return inTime(timers, asked)
  }
}

const lookup = async (name: string): Promise<readonly string[]> => {
  const found = await dns.lookup(name, { all: true, order: 'verbatim' })
  if (found.length === 0) throw Object.assign(new Error(`${name} has no address`), { code: 'ENODATA' })
  return [...new Set(found.map(({ address }) => address))]
}

const inTime = <T>(timers: Timers, asked: Promise<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    const late = Object.assign(new Error('no answer of the name service in time'), { code: 'EAI_AGAIN' })
    const cancel = timers.after(withinMs, () => reject(late), 'background')
    asked.then(resolve, reject).finally(cancel)
  })
