// The thread that a PKCS#11 module is called on, one order after the other. A token that was pulled answers with errors for good, also
// when it is back; only C_Finalize and C_Initialize heal that. So every error of a token ends with both, at once.

import { dlopen } from 'node:ffi'
import { parentPort, workerData } from 'node:worker_threads'
import type { LoadOrder, Order, Outcome, ThreadStart, Trouble } from './pkcs11-messages.ts'
import { CallFailed, NoLibrary, openLibrary, type Pkcs11Library } from './pkcs11-library.ts'
import { openModuleTurns } from './pkcs11-turns.ts'
import { KeyTrouble, familyOf, findPair, makePair, privateKeyOf, rawSignature } from './pkcs11-keys.ts'

const port = parentPort
if (port === null) throw new Error('this file is started as a thread')
const { library: file, delayMs, shared, own } = workerData as ThreadStart
const turns = openModuleTurns(shared, own)

type Session = { readonly slot: bigint; readonly handle: bigint; loggedIn: boolean; readonly keys: Map<string, bigint> }

class PinWanted extends Error {}

class TokenTrouble extends Error {
  readonly trouble: Trouble
  readonly next: string

  constructor(trouble: Trouble, message: string, next: string) {
    super(message)
    this.trouble = trouble
    this.next = next
  }
}

let library: Pkcs11Library | null = null
let isInitialized = false
let isByOthers = false
/** By label and serial number of the token. */
const sessions = new Map<string, Session>()

const reset = (): void => {
  sessions.clear()
  const of = library
  if (of !== null && isInitialized) turns.ifAlone(() => of.finalize())
  isInitialized = false
  isByOthers = false
}

const opened = (): Pkcs11Library => {
  const of = (library ??= openLibrary(file))
  if (!isInitialized) isByOthers = turns.locked(() => of.initialize())
  isInitialized = true
  return of
}

const sessionFor = (of: Pkcs11Library, { key: { token, serial }, pin }: Order): Session => {
  const name = nameOf(token, serial)
  const known = sessions.get(name)
  const session = known ?? openSession(of, token, serial)
  sessions.set(name, session)
  if (session.loggedIn) return session
  if (pin === null) throw new PinWanted()
  logIn(of, token, session, pin)
  session.loggedIn = true
  return session
}

const nameOf = (token: string, serial: string | null): string => `${token}\0${serial ?? ''}`

const openSession = (of: Pkcs11Library, token: string, serial: string | null): Session => {
  const there = of.slots().flatMap((slot) => {
    const info = of.tokenInfo(slot)
    return info === null ? [] : [{ slot, info }]
  })
  const fitting = there.filter(({ info }) => info.label === token && (serial === null || info.serial === serial))
  const [found] = fitting
  if (found === undefined) {
    const others = there.map(({ info }) => info.label).filter((label) => label !== '')
    const seen = others.length === 0 ? 'no token is there' : `there: ${others.slice(0, 8).join(', ')}`
    throw new TokenTrouble('token', `the token ${token} is not there (${seen})`, 'Insert it; it is found by its label')
  }
  if (fitting.length > 1)
    throw new TokenTrouble(
      'token',
      `${fitting.length} tokens have the label ${token}`,
      'Say which: pkcs11:token=LABEL;serial=NUMBER;object=...',
    )
  return { slot: found.slot, handle: of.openSession(found.slot, 'to read'), loggedIn: false, keys: new Map() }
}

const finalTry = 0x20000
const locked = 0x40000

/** A token locks itself after a few wrong PINs: the last try is left to a person. */
const logIn = (of: Pkcs11Library, token: string, { slot, handle }: Session, pin: string): void => {
  const flags = of.tokenInfo(slot)?.flags ?? 0
  if ((flags & locked) !== 0)
    throw new TokenTrouble('pin', `the PIN of the token ${token} is locked`, 'Unlock it with the tool of its maker')
  if ((flags & finalTry) !== 0)
    throw new TokenTrouble(
      'pin',
      `one more wrong PIN would lock the token ${token}: it is not tried`,
      'Log in once with the tool of its maker, and put the right PIN into the file',
    )
  try {
    of.login(handle, pin)
  } catch (error) {
    if (!(error instanceof CallFailed) || !refusedPin.has(error.rv)) throw error
    throw new TokenTrouble(
      'pin',
      `the token ${token} refuses the PIN (${error.message})`,
      'Put the right PIN into the file; it is not tried again before the file has changed',
    )
  }
}

/** Incorrect, invalid, of a wrong length, expired, locked. */
const refusedPin: ReadonlySet<number> = new Set([0xa0, 0xa1, 0xa2, 0xa3, 0xa4])

const once = (order: Order): Uint8Array => {
  const of = opened()
  return order.kind === 'load' ? new Uint8Array() : turns.inside(() => carriedOut(of, order))
}

const carriedOut = (of: Pkcs11Library, order: Exclude<Order, LoadOrder>): Uint8Array => {
  const session = sessionFor(of, order)
  const { handle } = session
  switch (order.kind) {
    case 'find':
      return findPair(of, handle, order.key)
    case 'make': {
      const writing = of.openSession(session.slot, 'to write')
      try {
        return makePair(of, writing, order.key, order.curve)
      } finally {
        of.closeSession(writing)
      }
    }
    case 'sign': {
      const family = familyOf(order.spki)
      const name = `${family}\0${order.key.label ?? ''}\0${order.key.id ?? ''}`
      const key = session.keys.get(name) ?? privateKeyOf(of, handle, order.key, [family])
      session.keys.set(name, key)
      return rawSignature(of, handle, key, order)
    }
  }
}

/** As a token that takes its time does: nothing can interrupt it. */
const dawdle = (): void => {
  if (delayMs === 0) return
  dlopen(null, { usleep: { arguments: ['uint32'], return: 'int32' } }).functions.usleep(delayMs * 1000)
}

/**
 * A session of before may be of a token that was pulled since, and is back: it answers with errors, or that there is no such key. Then
 * the order is carried out with a new one.
 */
const perform = (order: Order): Uint8Array => {
  const wasOpen = sessions.get(nameOf(order.key.token, order.key.serial))?.loggedIn === true
  try {
    return once(order)
  } catch (error) {
    if (error instanceof PinWanted || !(wasOpen || isByOthers)) throw error
    if (error instanceof TokenTrouble && error.trouble === 'pin') throw error
    reset()
    return once(order)
  }
}

const outcomeOf = (order: Order): Outcome => {
  try {
    return { kind: 'done', bytes: perform(order) }
  } catch (error) {
    if (error instanceof PinWanted) return { kind: 'pin wanted' }
    reset()
    if (error instanceof KeyTrouble) return { kind: 'failed', trouble: 'key', why: error.message, next: error.next }
    if (error instanceof TokenTrouble)
      return { kind: 'failed', trouble: error.trouble, why: error.message, next: error.next }
    if (error instanceof NoLibrary) return { kind: 'failed', trouble: 'library', why: error.message, next: error.next }
    const why = `the token ${order.key.token} has failed: ${error instanceof Error ? error.message : String(error)}`
    return { kind: 'failed', trouble: 'token', why, next: 'Look at the token with the tool of its maker' }
  }
}

port.on('message', (order: Order | 'end') => {
  if (order !== 'end') {
    if (order.kind === 'sign') dawdle()
    return port.postMessage(outcomeOf(order))
  }
  reset()
  port.close()
})
