// A browser can be made to call 127.0.0.1 by any page it shows: by a name that was pointed there (DNS rebinding), or
// across sites. Both show in headers that a page cannot choose.

import { refuse, type Refusal } from '#domain/core/refusal.ts'

export type Caller = { readonly host: string | undefined; readonly origin: string | undefined }

export type HostRule = (caller: Caller) => Refusal | null

/** Answers only to the names of this very machine and the address listened on, with the port. */
export const loopbackRule = (address: string, port: number): HostRule => {
  const names = new Set(['127.0.0.1', 'localhost', '[::1]', address.includes(':') ? `[${address}]` : address])
  const hosts = [...names].flatMap((name) => (port === 80 ? [name, `${name}:80`] : [`${name}:${port}`]))
  const origins = hosts.map((host) => `http://${host}`)
  return ({ host, origin }) => {
    if (host === undefined || !hosts.includes(host.toLowerCase()))
      return refuse('HOST_NOT_ALLOWED', `Host has to be ${hosts.join(' or ')}`)
    if (origin !== undefined && !origins.includes(origin)) return refuse('HOST_NOT_ALLOWED', 'Origin is another site')
    return null
  }
}

/** The certificate has proved the name; a page of another site still has to be refused. */
export const sameOriginRule: HostRule = ({ host, origin }) =>
  origin === undefined || (host !== undefined && origin === `https://${host.toLowerCase()}`)
    ? null
    : refuse('HOST_NOT_ALLOWED', 'Origin is another site')

/** Only addresses no other machine can reach. `localhost` could resolve to any address, so it is taken as 127.0.0.1. */
export const loopbackAddress = (host: string): string | null => {
  if (host === 'localhost') return '127.0.0.1'
  return host === '::1' || /^127(\.\d{1,3}){3}$/.test(host) ? host : null
}
