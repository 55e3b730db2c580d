// The functions of a PKCS#11 module, called through node:ffi. Its structures are those of LP64 systems: a CK_ULONG and a pointer have
// eight bytes each. Every call blocks the thread it is made on: only pkcs11-thread.ts makes any.

import { dlopen, getRawPointer, type ArgumentType } from 'node:ffi'

/** A call that was not answered with CKR_OK. */
export class CallFailed extends Error {
  readonly rv: number

  constructor(call: string, rv: number) {
    super(`${call}: ${meaning[rv] ?? 'error'} (0x${rv.toString(16)})`)
    this.name = 'CallFailed'
    this.rv = rv
  }
}

/** No module, or none that can be used: nothing that another try would change. */
export class NoLibrary extends Error {
  readonly next: string

  constructor(message: string, next: string) {
    super(message)
    this.next = next
  }
}

const meaning: Readonly<Record<number, string>> = {
  0x5: 'general error',
  0x6: 'function failed',
  0x30: 'device error',
  0x32: 'device removed',
  0x54: 'not supported by the token',
  0x60: 'invalid key handle',
  0x63: 'the key is of another type',
  0x68: 'the key must not be used for this',
  0x70: 'mechanism not supported by the token',
  0x82: 'no such object',
  0xa0: 'the PIN is wrong',
  0xa2: 'the PIN has a length that the token does not take',
  0xa4: 'the PIN is locked',
  0xb3: 'the session is gone',
  0xe0: 'no token present',
  0xe1: 'token not recognised',
  0xe2: 'the token is write-protected',
  0x101: 'not logged in',
  0x190: 'not initialised',
}

const ulong = 'uint64'
const pointer = 'pointer'
const takes = <const A extends readonly ArgumentType[]>(...args: A) => ({ arguments: args, return: ulong }) as const

const signatures = {
  C_Initialize: takes(pointer),
  C_Finalize: takes(pointer),
  C_GetSlotList: takes('uint8', pointer, pointer),
  C_GetTokenInfo: takes(ulong, pointer),
  C_OpenSession: takes(ulong, ulong, pointer, pointer, pointer),
  C_CloseSession: takes(ulong),
  C_Login: takes(ulong, ulong, pointer, ulong),
  C_FindObjectsInit: takes(ulong, pointer, ulong),
  C_FindObjects: takes(ulong, pointer, ulong, pointer),
  C_FindObjectsFinal: takes(ulong),
  C_GetAttributeValue: takes(ulong, ulong, pointer, ulong),
  C_GenerateKeyPair: takes(ulong, pointer, pointer, ulong, pointer, ulong, pointer, pointer),
  C_SignInit: takes(ulong, pointer, ulong),
  C_Sign: takes(ulong, pointer, ulong, pointer, pointer),
} as const

export type Attribute = readonly [type: number, value: Buffer]

export type TokenInfo = {
  readonly label: string
  readonly serial: string
  readonly flags: number
}

export type Pkcs11Library = ReturnType<typeof openLibrary>

/** More than one call has. */
const mostKept = 64

/** Throws `NoLibrary`. */
export const openLibrary = (file: string) => {
  const f = functionsOf(file)
  const kept: Buffer[] = []
  /** The module sees the address alone. What lies there must not be collected before it has returned, although nothing here reads it again. */
  const addressOf = (buffer: Buffer): bigint => {
    kept.push(buffer)
    if (kept.length > mostKept) kept.shift()
    return getRawPointer(buffer)
  }
  const done = (call: string, rv: bigint): void => {
    if (rv !== 0n) throw new CallFailed(call, Number(rv))
  }
  const template = (attributes: readonly Attribute[]): Buffer => {
    const bytes = Buffer.alloc(24 * attributes.length)
    for (const [index, [type, value]] of attributes.entries()) {
      bytes.writeBigUInt64LE(BigInt(type), 24 * index)
      bytes.writeBigUInt64LE(addressOf(value), 24 * index + 8)
      bytes.writeBigUInt64LE(BigInt(value.length), 24 * index + 16)
    }
    return bytes
  }
  const mechanism = (type: number): Buffer => {
    const bytes = Buffer.alloc(24)
    bytes.writeBigUInt64LE(BigInt(type))
    return bytes
  }

  return {
    /** It is initialised once for all threads of the process. True: another has done so before, and may have seen other tokens. */
    initialize(): boolean {
      const args = Buffer.alloc(48)
      args.writeBigUInt64LE(osLocking, 32)
      const rv = f.C_Initialize(addressOf(args))
      if (rv === alreadyInitialized) return true
      done('C_Initialize', rv)
      return false
    },
    /** Sessions, logins and handles are gone afterwards. */
    finalize: (): void => void f.C_Finalize(null),
    /** Of tokens that are present. */
    slots(): readonly bigint[] {
      const list = Buffer.alloc(8 * mostSlots)
      const count = number(mostSlots)
      done('C_GetSlotList', f.C_GetSlotList(1, addressOf(list), addressOf(count)))
      const found = Math.min(mostSlots, Number(count.readBigUInt64LE()))
      return Array.from({ length: found }, (_, index) => list.readBigUInt64LE(8 * index))
    },
    /** Null: there is none in that slot any more. */
    tokenInfo(slot: bigint): TokenInfo | null {
      const info = Buffer.alloc(208)
      if (f.C_GetTokenInfo(slot, addressOf(info)) !== 0n) return null
      const text = (from: number, to: number): string => info.toString('utf8', from, to).replace(/[ \0]+$/, '')
      return { label: text(0, 32), serial: text(80, 96), flags: Number(info.readBigUInt64LE(96)) }
    },
    openSession(slot: bigint, mode: 'to read' | 'to write'): bigint {
      const session = number(0)
      const flags = mode === 'to read' ? 4n : 6n
      done('C_OpenSession', f.C_OpenSession(slot, flags, null, null, addressOf(session)))
      return session.readBigUInt64LE()
    },
    closeSession: (session: bigint): void => void f.C_CloseSession(session),
    login(session: bigint, pin: string): void {
      const secret = Buffer.alloc(Buffer.byteLength(pin), pin)
      try {
        const rv = f.C_Login(session, 1n, addressOf(secret), BigInt(secret.length))
        if (rv !== alreadyLoggedIn) done('C_Login', rv)
      } finally {
        secret.fill(0)
      }
    },
    /** At most two: who looks for one wants to know whether there is another. */
    find(session: bigint, wanted: readonly Attribute[]): readonly bigint[] {
      const query = template(wanted)
      const found = Buffer.alloc(16)
      const count = number(0)
      done('C_FindObjectsInit', f.C_FindObjectsInit(session, addressOf(query), BigInt(wanted.length)))
      const rv = f.C_FindObjects(session, addressOf(found), 2n, addressOf(count))
      f.C_FindObjectsFinal(session)
      done('C_FindObjects', rv)
      const number_ = Number(count.readBigUInt64LE())
      return Array.from({ length: number_ }, (_, index) => found.readBigUInt64LE(8 * index))
    },
    /** Empty where the token has none, or does not show it. */
    attribute(session: bigint, object: bigint, type: number): Buffer {
      const value = Buffer.alloc(256)
      const query = template([[type, value]])
      const rv = f.C_GetAttributeValue(session, object, addressOf(query), 1n)
      const length = query.readBigUInt64LE(16)
      return rv !== 0n || length > 256n ? Buffer.alloc(0) : value.subarray(0, Number(length))
    },
    generateKeyPair(
      session: bigint,
      type: number,
      isPublic: readonly Attribute[],
      isPrivate: readonly Attribute[],
    ): bigint {
      const [how, forPublic, forPrivate] = [mechanism(type), template(isPublic), template(isPrivate)]
      const [publicKey, privateKey] = [number(0), number(0)]
      const rv = f.C_GenerateKeyPair(
        session,
        addressOf(how),
        addressOf(forPublic),
        BigInt(isPublic.length),
        addressOf(forPrivate),
        BigInt(isPrivate.length),
        addressOf(publicKey),
        addressOf(privateKey),
      )
      done('C_GenerateKeyPair', rv)
      return publicKey.readBigUInt64LE()
    },
    sign(session: bigint, key: bigint, type: number, data: Buffer): Buffer {
      const how = mechanism(type)
      const signature = Buffer.alloc(256)
      const length = number(signature.length)
      done('C_SignInit', f.C_SignInit(session, addressOf(how), key))
      const rv = f.C_Sign(session, addressOf(data), BigInt(data.length), addressOf(signature), addressOf(length))
      done('C_Sign', rv)
      return signature.subarray(0, Number(length.readBigUInt64LE()))
    },
  }
}

/** CKF_OS_LOCKING_OK: a second thread may come when the first one hangs. */
const osLocking = 2n
const mostSlots = 256
const alreadyInitialized = 0x191n
const alreadyLoggedIn = 0x100n

const number = (value: number): Buffer => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt(value))
  return bytes
}

const functionsOf = (file: string) => {
  try {
    return dlopen(file, signatures).functions
  } catch (cause) {
    // The loader names the file, and what is wrong with it.
    throw new NoLibrary(
      `the PKCS#11 module ${file} cannot be loaded: ${cause instanceof Error ? cause.message : String(cause)}`,
      'Install the module of the token, and name its file with --pkcs11-module',
    )
  }
}
