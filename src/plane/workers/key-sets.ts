// The public keys of worker issuers. A set that lies behind an address is fetched over TLS with the CA that an operator named, kept, and
// asked for again now and then. A token cannot make the plane fetch at will: a key that is not known is asked for once a minute.

import type { WorkerIssuer } from '#domain/workers/worker-issuer.ts'
import { parseJwks, type JwtKey } from '#pki/jwt.ts'
import { sha256Hex } from '#platform/bytes.ts'
import { openHttpClient } from '#platform/http-client.ts'
import type { Core } from '#plane/core/core.ts'

export type KeySets = {
  /** `unknown`: the issuer has no such key. `away`: its keys cannot be fetched, and none of those that were is good any more. */
  keyOf(issuer: WorkerIssuer, keyId: string): Promise<JwtKey | 'unknown' | 'away'>
  stateOf(issuer: WorkerIssuer): KeySetState
  /** Fetches them where they have not been yet: an operator is shown at once what is wrong. */
  look(issuer: WorkerIssuer): Promise<KeySetState>
}

export type KeySetState = {
  readonly keys: number
  /** Null: never. */
  readonly fetchedAtMs: number | null
  /** Why the last attempt came to nothing; null: it did not. */
  readonly trouble: string | null
}

/** Rejects where it is not answered in time, or not with a key set. */
export type FetchKeySet = (url: string, ca: string) => Promise<string>

/** A key that was withdrawn is good for so long, where its set can be fetched. Then the next token waits for the set. */
const freshMs = 5 * 60_000
/** And for so long where it cannot: then workers that start are refused, and those that are there go on until their certificates end. */
const staleMs = 60 * 60_000
const askEveryMs = 60_000

type Held = {
  /** Of the source: another one is another set. */
  readonly source: string
  keys: readonly JwtKey[]
  fetchedMs: number
  triedMs: number
  fetchedAtMs: number | null
  trouble: string | null
  inFlight: Promise<void> | null
}

export const openKeySets = (core: Pick<Core, 'clock' | 'log'>, fetchKeySet: FetchKeySet = overTls): KeySets => {
  const { clock, log } = core
  const held = new Map<string, Held>()

  const heldFor = ({ name, keys }: WorkerIssuer): Held => {
    const source = sha256Hex(JSON.stringify(keys))
    const known = held.get(name)
    if (known?.source === source) return known
    const fresh: Held = {
      ...{ source, keys: [], fetchedMs: -Infinity, triedMs: -Infinity, fetchedAtMs: null, trouble: null },
      inFlight: null,
    }
    held.set(name, fresh)
    return fresh
  }
  const take = (set: Held, text: string): void => {
    const parsed = parseJwks(text)
    if (parsed.kind === 'malformed') throw new Error(parsed.why)
    set.keys = parsed.keys
    set.fetchedMs = clock.monotonicMs()
    set.fetchedAtMs = clock.nowMs()
    set.trouble = null
  }
  const refresh = (set: Held, { name, keys }: WorkerIssuer): Promise<void> => {
    if (set.inFlight !== null) return set.inFlight
    if (clock.monotonicMs() - set.triedMs < askEveryMs) return Promise.resolve()
    set.triedMs = clock.monotonicMs()
    const read = keys.kind === 'file' ? Promise.resolve(keys.document) : fetchKeySet(keys.url, keys.ca)
    set.inFlight = read
      .then((text) => take(set, text))
      .catch((error: unknown) => {
        set.trouble = error instanceof Error ? error.message.slice(0, 256) : 'it could not be fetched'
        log.warn({ err: error, issuer: name }, 'the keys of a worker issuer could not be fetched')
      })
      .finally(() => {
        set.inFlight = null
      })
    return set.inFlight
  }
  const stateOf = (issuer: WorkerIssuer): KeySetState => {
    const { keys, fetchedAtMs, trouble } = heldFor(issuer)
    return { keys: keys.length, fetchedAtMs, trouble }
  }

  return {
    async keyOf(issuer, keyId) {
      const set = heldFor(issuer)
      const isFile = issuer.keys.kind === 'file'
      const ageMs = (): number => clock.monotonicMs() - set.fetchedMs
      const isGood = (): boolean => set.fetchedAtMs !== null && (isFile || ageMs() <= staleMs)
      const find = (): JwtKey | null => (isGood() ? (set.keys.find((key) => key.keyId === keyId) ?? null) : null)
      // A key that is known may have been withdrawn since: it counts again only once its set has been asked for.
      if (find() === null || (!isFile && ageMs() > freshMs)) await refresh(set, issuer)
      return find() ?? (isGood() && set.trouble === null ? 'unknown' : 'away')
    },
    stateOf,
    async look(issuer) {
      const set = heldFor(issuer)
      if (set.fetchedAtMs === null) await refresh(set, issuer)
      return stateOf(issuer)
    },
  }
}

const timeoutMs = 5000
const mostBytes = 256 * 1024

/** A redirect is an answer other than 200, and is not followed. */
const overTls: FetchKeySet = async (url, ca) => {
  const { hostname, port, pathname, search } = new URL(url)
  const client = openHttpClient({
    kind: 'https',
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: port === '' ? 443 : Number(port),
    ca,
  })
  try {
    const headers = { accept: 'application/jwk-set+json, application/json' }
    const sent = { method: 'GET', path: `${pathname}${search}`, headers, body: null, timeoutMs, mostBytes } as const
    const { status, body } = await client.send(sent)
    if (status !== 200) throw new Error(`it answered ${status}`)
    return body
  } finally {
    client.close()
  }
}
