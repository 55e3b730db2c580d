// Keys of this plane in Vault's Transit engine. What waits for Vault is bounded, and a Vault that has failed is left alone for a while.

import type { KeyType } from '#domain/core/profile.ts'
import { sameBytes } from '#platform/bytes.ts'
import type { Clock } from '#platform/clock.ts'
import { doublingWaitMs, type Timers } from '#platform/timers.ts'
import { keyTypeOfSpki } from '#pki/keys.ts'
import type { Signer } from '#pki/signer.ts'
import { IssuerFault } from '#plane/outside/issuer-client.ts'
import { VaultFault } from '#plane/outside/vault-reply.ts'
import type { Vault } from '#plane/outside/vault-server.ts'
import type { TransitPlace } from './key-reference.ts'
import { TransitUnavailable, troubleText, type PlaceTrouble, type TransitTrouble } from './key-unavailable.ts'
import { openTransitHost, type TransitPlaces } from './transit-host.ts'
import { makeTransitKey, openTransitSigner, readTransitKey, type TransitKey } from './vault-transit.ts'

export type TransitKeys = {
  /** Nothing is asked of Vault before it signs. */
  signer(place: TransitPlace & { readonly version: number }, spki: Uint8Array): Signer
  /** One that is there. All reject with `TransitUnavailable`. */
  find(place: TransitPlace): Promise<TransitKey>
  make(name: string, type: KeyType): Promise<TransitKey>
  /** Looks whether what has failed works again, where it is not left alone. A key that is not kept any more is forgotten. */
  lookAgain(isKept: (key: TransitPlace) => boolean): Promise<void>
  troubles(): readonly PlaceTrouble[]
  close(): void
}

type Parts = {
  readonly clock: Clock
  readonly timers: Timers
  /** Left out: the Vault that the places name. */
  readonly vault?: Pick<Vault, 'ask' | 'close'>
}

/** As many as wait for a token. */
const mostOutstanding = 64
const mostWaitMs = 10_000
const firstWaitMs = 1000
const longestWaitMs = 30_000

type Named = { readonly name: string; readonly version: number | null; readonly spki: Uint8Array | null }
type Failing = {
  readonly error: TransitUnavailable
  readonly times: number
  readonly untilMs: number
  readonly key: Named
}

export const openTransitKeys = (parts: Parts, places: TransitPlaces): TransitKeys => {
  const { clock, timers, vault = openTransitHost(parts, places) } = parts
  const { mount } = places
  const placeName = `Vault at ${new URL(places.address).host}`
  /** By name and version of the key; what is wrong with Vault itself has the empty name. */
  const failing = new Map<string, Failing>()
  let outstanding = 0

  const barred = (key: Named): TransitUnavailable | null => {
    for (const name of ['', nameOf(key)]) {
      const failed = failing.get(name)
      if (failed !== undefined && clock.monotonicMs() < failed.untilMs) return failed.error
    }
    if (outstanding < mostOutstanding) return null
    return new TransitUnavailable('busy', `${outstanding} requests wait for Vault`, 'Try again in a moment')
  }
  const failed = (key: Named, error: TransitUnavailable): void => {
    const name = error.trouble === 'key' ? nameOf(key) : ''
    const before = failing.get(name)
    // What was asked at the same time fails together, and is one failure.
    if (before !== undefined && clock.monotonicMs() < before.untilMs) return
    const times = (before?.times ?? 0) + 1
    const untilMs = clock.monotonicMs() + doublingWaitMs(times - 1, firstWaitMs, longestWaitMs)
    failing.set(name, { error, times, untilMs, key })
  }
  const run = async <T>(key: Named, isKept: boolean, ask: () => Promise<T>): Promise<T> => {
    const no = barred(key)
    if (no !== null) throw no
    outstanding++
    try {
      const done = await ask()
      failing.delete('')
      failing.delete(nameOf(key))
      return done
    } catch (error) {
      const unavailable = unavailableFor(error, places)
      // Vault is well, and so are the other keys there.
      if (unavailable.trouble === 'key') failing.delete('')
      // Who makes a key looks first whether there is one.
      if (isKept || unavailable.trouble !== 'key') failed(key, unavailable)
      throw unavailable
    } finally {
      outstanding--
    }
  }
  const inTime = async <T>(ask: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    const late = new AbortController()
    const cancel = timers.after(mostWaitMs, () => late.abort())
    try {
      return await ask(late.signal)
    } finally {
      cancel()
    }
  }
  const read = (name: string, version: number | null): Promise<TransitKey> =>
    inTime((signal) => readTransitKey(vault, { mount, name, version }, signal))

  return {
    signer({ key: name, version }, spki) {
      const key = { mount, name, version, spki }
      const type = keyTypeOfSpki(spki)
      if (type === null) throw new Error(`the public key that is on record for ${name} in Transit is none`)
      const signer = openTransitSigner({ vault, timers }, key)
      return { type, spki, sign: (data) => run(key, true, () => signer.sign(data)) }
    },
    find: ({ key: name, version }) => run({ name, version, spki: null }, false, () => read(name, version)),
    make: (name, type) =>
      run({ name, version: null, spki: null }, false, () =>
        inTime((signal) => makeTransitKey(vault, { mount, name }, type, signal)),
      ),
    async lookAgain(isKept) {
      for (const [name, { key, error }] of failing)
        if (error.trouble === 'key' && !isKept({ key: key.name, version: key.version })) failing.delete(name)
      const due = [...failing.values()].filter(({ untilMs }) => clock.monotonicMs() >= untilMs)
      for (const { key } of due) {
        const { name, version, spki } = key
        const look = async (): Promise<void> => {
          const found = await read(name, version)
          if (spki !== null && !sameBytes(found.spki, spki))
            throw new VaultFault('key', `the key ${mount}/keys/${name} is another one than is on record`, true)
        }
        // What it finds is among the troubles.
        await run(key, spki !== null, look).catch(() => undefined)
      }
    },
    troubles: () => [...failing.values()].map(({ error }) => ({ place: placeName, text: troubleText(error) })),
    close: () => vault.close(),
  }
}

const nameOf = ({ name, version }: Named): string => `${name}\0${version ?? ''}`

const unavailableFor = (error: unknown, { address, mount }: TransitPlaces): TransitUnavailable => {
  if (error instanceof TransitUnavailable) return error
  const message = `a key in Transit cannot be used: ${error instanceof Error ? error.message : String(error)}`
  const trouble = troubleOf(error)
  return new TransitUnavailable(trouble, message, nextFor(trouble, address, mount))
}

const troubleOf = (error: unknown): TransitTrouble => {
  if (error instanceof VaultFault && (error.code === 'key' || error.code === 'login')) return error.code
  if (error instanceof VaultFault || error instanceof IssuerFault) return 'away'
  throw error
}

const nextFor = (trouble: TransitTrouble, address: string, mount: string): string => {
  switch (trouble) {
    case 'key':
      return `Look at the keys there (vault list ${mount}/keys), at the policy of the login, and whether Transit is mounted there (--vault-transit)`
    case 'login':
      return 'Put the right secret into the file of --vault-secret; it is read again'
    default:
      return `Look whether ${address} answers and is unsealed (vault status)`
  }
}
