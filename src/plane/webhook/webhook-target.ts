// Where alerts are delivered to. The secret comes from a file: every user of the machine can read the arguments and variables of a
// process.

import { parseNetwork, type Network } from '#platform/ip-address.ts'
import { isIP } from '#platform/resolve-name.ts'
import { isLoopback, mayBeCalled } from './webhook-address.ts'

export type WebhookTarget = {
  readonly url: URL
  readonly secretFile: string
  /** Roots trusted besides the system's. */
  readonly caFile: string | null
  /** Networks that may be called although they are not public. */
  readonly networks: readonly Network[]
}

export type WebhookOptions = {
  readonly url: string | null
  readonly secretFile: string | null
  readonly caFile: string | null
  readonly networks: readonly string[]
}

/** Null: none is wanted. A text says what is wrong. */
export const webhookTarget = (given: WebhookOptions): WebhookTarget | null | string => {
  const { secretFile, caFile } = given
  if (given.url === null) {
    const alone = secretFile ?? caFile ?? given.networks[0]
    return alone === undefined ? null : 'options of a webhook were given, but no --alert-webhook URL'
  }
  const url = parseUrl(given.url)
  if (url === null) return '--alert-webhook takes https://HOST/PATH, without a user, a password or a fragment'
  if (secretFile === null) return '--alert-webhook needs --alert-webhook-secret-file FILE: every delivery is signed'
  const networks = given.networks.map((text) => ({ text, network: parseNetwork(text) }))
  const wrong = networks.find(({ network }) => network === null)
  if (wrong !== undefined) return `--alert-webhook-network takes a network such as 10.1.2.0/24, not ${wrong.text}`
  const listed = networks.flatMap(({ network }) => network ?? [])
  const host = hostOf(url)
  if (url.protocol === 'http:' && !(isLoopback(host) && mayBeCalled(host, listed))) {
    return '--alert-webhook may be http: only for a loopback address that --alert-webhook-network lists'
  }
  // A name is judged each time it is resolved; an address can be judged now.
  if (isIP(host) && !mayBeCalled(host, listed)) {
    return `--alert-webhook names an address that is not public: list its network (--alert-webhook-network), or use another`
  }
  return { url, secretFile, caFile, networks: listed }
}

/** Without the brackets of an IPv6 address. Decimal, octal and hexadecimal addresses are spelled out by URL already. */
export const hostOf = (url: URL): string => url.hostname.replace(/^\[(.*)\]$/, '$1')

const longestUrl = 2048

const parseUrl = (text: string): URL | null => {
  if (text.length > longestUrl || !URL.canParse(text)) return null
  const url = new URL(text)
  const plain = url.username === '' && url.password === '' && url.hash === '' && url.hostname !== ''
  return plain && (url.protocol === 'https:' || url.protocol === 'http:') ? url : null
}
