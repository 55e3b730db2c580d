// Keys in PKCS#11 tokens, for code that must never wait: a thread of its own calls the module, which may take its time, and may
// never return. What it signs has been verified with the public key.

import type { Worker } from 'node:worker_threads'
import type { Clock } from './clock.ts'
import { errno } from './files.ts'
import { startOwnThread } from './own-thread.ts'
import type { Curve, KeyPlace, Order, Outcome, ThreadStart, Trouble } from './pkcs11-messages.ts'
import { leaveFor, ownOfThread, sharedByThreads } from './pkcs11-turns.ts'
import { doublingWaitMs, type Timers } from './timers.ts'

export type { Curve, KeyPlace } from './pkcs11-messages.ts'

/** The key cannot be used now. The message says why and holds no secret. */
export class Pkcs11Unavailable extends Error {
  readonly code = 'PKCS11_UNAVAILABLE'
  readonly next: string
  readonly trouble: Trouble | 'busy'

  constructor(trouble: Trouble | 'busy', message: string, next: string) {
    super(message)
    this.name = 'Pkcs11Unavailable'
    this.trouble = trouble
    this.next = next
  }
}

export type Pkcs11 = {
  /** SubjectPublicKeyInfo, DER, of a pair that is there. */
  find(key: KeyPlace): Promise<Uint8Array>
  /** Makes a pair that the token does not let out; its SubjectPublicKeyInfo. */
  make(key: KeyPlace & { readonly label: string }, curve: Curve): Promise<Uint8Array>
  /** ECDSA, with the digest that goes with the curve: r and s. Ed25519 as it is. */
  sign(key: KeyPlace, spki: Uint8Array, data: Uint8Array): Promise<Uint8Array>
  /** Rejects where there is no module that could be used. */
  load(): Promise<void>
  /**
   * Looks whether what has failed works again, where it is not left alone. A module that hangs is not called for that: each call costs a
   * thread. A key that is not kept any more is forgotten.
   */
  lookAgain(isKept: (key: KeyPlace) => boolean): Promise<void>
  /** What is wrong with tokens now. `token` null: with the module. */
  troubles(): readonly TokenTrouble[]
  close(): void
}

export type TokenTrouble = { readonly token: string | null; readonly error: Pkcs11Unavailable }

export type Pkcs11Parts = {
  /** The file of the module. */
  readonly library: string
  /** Read each time that a token has to be logged in to. Throws `Pkcs11Unavailable` where there is none. */
  readonly pinOf: (token: string) => string
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly timers: Pick<Timers, 'after'>
  /** For tests; left out: the usual. */
  readonly limits?: { readonly callMs?: number; readonly delayMs?: number }
}

/** More than a burst of enrollments, and no more than a token serves while a caller waits. */
const mostWaiting = 64
const callMs = 10_000
const firstWaitMs = 1000
const longestWaitMs = 30_000
/** Each costs the memory of a thread until the process ends. */
const mostHanging = 4

type What = Order extends infer O ? (O extends Order ? Omit<O, 'pin'> : never) : never

type Call = {
  readonly what: What
  /** Null: the thread has not asked for one. */
  pin: string | null
  readonly resolve: (bytes: Uint8Array) => void
  readonly reject: (error: Pkcs11Unavailable) => void
}

/** A token that has failed is left alone for a while, the longer the more often it fails. */
type Failing = {
  readonly error: Pkcs11Unavailable
  readonly times: number
  readonly untilMs: number
  /** The key that was asked for, and its public half where that is known. */
  readonly key: KeyPlace
  readonly spki: Uint8Array | null
}

/** `left`: it was terminated, and has returned from the module. */
type Thread = { readonly worker: Worker; readonly left: () => void }

type RefusedPin = { readonly pin: string | null; readonly error: Pkcs11Unavailable; readonly key: KeyPlace }

export const openPkcs11 = (parts: Pkcs11Parts): Pkcs11 => {
  const { clock, timers, limits = {} } = parts
  const waiting: Call[] = []
  const failing = new Map<string, Failing>()
  const refusedPins = new Map<string, RefusedPin>()
  let running: { readonly call: Call; readonly cancel: () => void } | null = null
  let thread: Thread | null = null
  let hanging = 0
  let isClosed = false

  /** What keeps the token from being asked now; null: nothing. */
  const barred = (key: KeyPlace): Pkcs11Unavailable | null => {
    if (isClosed) return new Pkcs11Unavailable('busy', 'the plane is stopping', 'Try again when it runs')
    const { token } = key
    for (const name of [wholeModule, token, nameOf(key)]) {
      const failed = failing.get(name)
      if (failed !== undefined && clock.monotonicMs() < failed.untilMs) return failed.error
    }
    const refused = refusedPins.get(token)
    if (refused === undefined) return null
    if (!hasNewPin(token, refused)) return refused.error
    refusedPins.delete(token)
    return null
  }
  const pinOr = (token: string): string | null => {
    try {
      return parts.pinOf(token)
    } catch {
      return null
    }
  }
  /** A file that is away for a moment may come back with the same PIN. */
  const hasNewPin = (token: string, { pin }: RefusedPin): boolean => {
    const now = pinOr(token)
    return now !== null && now !== pin
  }
  const failed = (name: string, error: Pkcs11Unavailable, what: What): void => {
    const times = (failing.get(name)?.times ?? 0) + 1
    const untilMs = clock.monotonicMs() + doublingWaitMs(times - 1, firstWaitMs, longestWaitMs)
    failing.set(name, { error, times, untilMs, key: what.key, spki: what.kind === 'sign' ? what.spki : null })
  }
  const worker = (): Worker => {
    if (thread !== null) return thread.worker
    loadExit()
    const shared = sharedFor(parts.library)
    const own = ownOfThread(++threadsStarted)
    const start: ThreadStart = { library: parts.library, shared, own, delayMs: limits.delayMs ?? 0 }
    const started = startOwnThread('pkcs11-thread', 'pkcs11', start)
    started.unref()
    started.on('message', (outcome: Outcome) => {
      if (thread?.worker === started) ended(outcome)
    })
    const lost = (trouble: Trouble, why: string, next: string): void => {
      if (thread?.worker !== started) return
      thread = null
      ended({ kind: 'failed', trouble, why, next })
    }
    started.on('error', (error: Error) => {
      if (errno(error) === 'ERR_UNKNOWN_BUILTIN_MODULE')
        return lost('library', `Node ${process.version} cannot call PKCS#11 modules`, 'Run it with Node 26.1 or newer')
      lost('token', `the thread of the PKCS#11 module has failed: ${error.message}`, 'Restart the plane')
    })
    started.on('exit', () => lost('token', 'the thread of the PKCS#11 module has ended', 'Restart the plane'))
    thread = { worker: started, left: () => leaveFor(shared, own) }
    return started
  }
  const pump = (): void => {
    while (running === null) {
      const call = waiting.shift()
      if (call === undefined) return
      const no = barred(call.what.key)
      if (no === null) carryOut(call)
      else call.reject(no)
    }
  }
  const carryOut = (call: Call): void => {
    running = { call, cancel: timers.after(limits.callMs ?? callMs, () => hangs(call)) }
    const order: Order = { ...call.what, pin: call.pin }
    worker().postMessage(order)
  }
  const ended = (outcome: Outcome): void => {
    if (running === null) return
    const { call, cancel } = running
    running = null
    cancel()
    settle(call, outcome)
    pump()
  }
  const settle = (call: Call, outcome: Outcome): void => {
    const { key } = call.what
    const { token } = key
    switch (outcome.kind) {
      case 'done':
        for (const name of [wholeModule, token, nameOf(key)]) failing.delete(name)
        return call.resolve(outcome.bytes)
      case 'pin wanted':
        return logIn(call)
      case 'failed': {
        const error = new Pkcs11Unavailable(outcome.trouble, outcome.why, outcome.next)
        if (outcome.trouble === 'pin') refusedPins.set(token, { pin: call.pin, error, key })
        else if (outcome.trouble !== 'key') failed(token, error, call.what)
        else {
          // The token is well, and so are its other keys. Who makes a key looks first whether there is one.
          for (const name of [wholeModule, token]) failing.delete(name)
          if (call.what.kind === 'sign') failed(nameOf(key), error, call.what)
        }
        return call.reject(error)
      }
    }
  }
  const logIn = (call: Call): void => {
    try {
      call.pin = parts.pinOf(call.what.key.token)
      waiting.unshift(call)
    } catch (thrown) {
      const error = thrown instanceof Pkcs11Unavailable ? thrown : noPin(call.what.key.token, thrown)
      failed(call.what.key.token, error, call.what)
      call.reject(error)
    }
  }
  /** The call may come back in an hour, or never: its thread is given up, and whatever waits is told. */
  const hangs = (call: Call): void => {
    const seconds = (limits.callMs ?? callMs) / 1000
    const why = `the PKCS#11 module has not answered within ${seconds} s`
    const left = hanging + 1
    const next = left < mostHanging ? 'It is tried again with a new thread' : 'Restart the plane once the token answers'
    const error = new Pkcs11Unavailable('token', why, next)
    running = null
    giveUpThread()
    failed(wholeModule, error, call.what)
    call.reject(error)
    pump()
  }
  const giveUpThread = (): void => {
    const lost = thread
    thread = null
    if (lost === null) return
    hanging++
    const mayEnd = endAtOnce()
    void lost.worker.terminate().then(() => {
      lost.left()
      hanging--
      mayEnd()
    })
    // Who terminates a thread waits for it, unless told otherwise.
    lost.worker.unref()
  }

  const ask = (what: What): Promise<Uint8Array> =>
    new Promise((resolve, reject) => {
      const no = barred(what.key) ?? tooMuch(waiting.length, hanging)
      if (no !== null) return reject(no)
      waiting.push({ what, pin: null, resolve, reject })
      pump()
    })

  return {
    find: (key) => ask({ kind: 'find', key }),
    make: (key, curve) => ask({ kind: 'make', key, curve }),
    sign: (key, spki, data) => ask({ kind: 'sign', key, spki, data }),
    load: async () =>
      void (await ask({ kind: 'load', key: { token: wholeModule, serial: null, label: null, id: null } })),
    async lookAgain(isKept) {
      for (const [name, { key, error }] of failing) if (error.trouble === 'key' && !isKept(key)) failing.delete(name)
      const due = [...failing].filter(([name, { untilMs }]) => name !== wholeModule && clock.monotonicMs() >= untilMs)
      for (const [, { key, spki }] of due) {
        // What it finds is among the troubles.
        const found = await ask({ kind: 'find', key }).catch(() => null)
        if (found === null || spki === null || Buffer.compare(found, spki) === 0) continue
        // The token is well, and so are its other keys.
        failed(nameOf(key), anotherKey(key), { kind: 'sign', key, spki, data: new Uint8Array() })
      }
      for (const refused of refusedPins.values())
        if (hasNewPin(refused.key.token, refused)) await ask({ kind: 'find', key: refused.key }).catch(() => null)
    },
    troubles: () => [
      ...[...failing].map(([name, { error, key }]) => ({ token: name === wholeModule ? null : key.token, error })),
      ...[...refusedPins.values()].map(({ error, key }) => ({ token: key.token, error })),
    ],
    close() {
      isClosed = true
      running?.cancel()
      const no = new Pkcs11Unavailable('busy', 'the plane is stopping', 'Try again when it runs')
      for (const call of [...(running === null ? [] : [running.call]), ...waiting.splice(0)]) call.reject(no)
      // It may hang: nobody waits for it to find that out.
      if (running !== null) giveUpThread()
      running = null
      thread?.worker.postMessage('end')
      thread = null
    },
  }
}

/** No token has this name. */
const wholeModule = '\0'
const nameOf = ({ token, serial, label, id }: KeyPlace): string => [token, serial, label, id].join('\0')

const tooMuch = (waiting: number, hanging: number): Pkcs11Unavailable | null => {
  if (waiting >= mostWaiting)
    return new Pkcs11Unavailable('busy', `${waiting} signatures wait for a token`, 'Try again in a moment')
  if (hanging >= mostHanging)
    return new Pkcs11Unavailable(
      'token',
      `${hanging} calls of the PKCS#11 module have never returned`,
      'Restart the plane once the token answers',
    )
  return null
}

const anotherKey = ({ token, label, id }: KeyPlace): Pkcs11Unavailable =>
  new Pkcs11Unavailable(
    'key',
    `the key ${label ?? `id ${id ?? ''}`} in the token ${token} is another one than is on record`,
    'Find out which key has that name now (pkcs11-tool --login --list-objects)',
  )

const noPin = (token: string, error: unknown): Pkcs11Unavailable =>
  new Pkcs11Unavailable(
    'pin',
    `the PIN of the token ${token} cannot be read: ${error instanceof Error ? error.message : String(error)}`,
    'Name its file with --pkcs11-pin, or hand over the systemd credential muster-pkcs11-pin',
  )

/** A module is one for the whole process, however often it is opened. */
const sharedOf = new Map<string, Int32Array>()
let threadsStarted = 0

const sharedFor = (library: string): Int32Array => {
  const shared = sharedOf.get(library) ?? sharedByThreads()
  sharedOf.set(library, shared)
  return shared
}

type Exit = (code: number) => void
let exitAtOnce: Exit | null = null

/** When the first thread starts: at the end of a process nothing is loaded any more. */
const loadExit = (): void => {
  if (exitAtOnce !== null) return
  // Where it is not there, no thread calls a module.
  void import('node:ffi').then(
    ({ dlopen }) => {
      exitAtOnce = dlopen(null, { _exit: { arguments: ['int32'], return: 'void' } }).functions._exit
    },
    () => undefined,
  )
}

/**
 * From now on the process ends without its threads; returns how that ends. Node waits for them otherwise, and one that hangs in a module would
 * keep it for ever.
 */
const endAtOnce = (): (() => void) => {
  const end: Exit = (code) => exitAtOnce?.(code)
  process.on('exit', end)
  return () => void process.off('exit', end)
}
