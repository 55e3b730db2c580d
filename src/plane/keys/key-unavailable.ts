// A key that is elsewhere cannot be used now: in a token (platform/pkcs11.ts), or in Vault's Transit engine.

import { Pkcs11Unavailable } from '#platform/pkcs11.ts'

/**
 * `key`: there is none, or it may not be used: Vault is well. `login`: it was refused. `settings`: the host does not say where Vault is, or what it
 * names cannot be read. `away`: all else. `busy`: too many wait.
 */
export type TransitTrouble = 'key' | 'login' | 'settings' | 'away' | 'busy'

/** The message says why and holds no secret. */
export class TransitUnavailable extends Error {
  readonly code = 'TRANSIT_UNAVAILABLE'
  readonly next: string
  readonly trouble: TransitTrouble

  constructor(trouble: TransitTrouble, message: string, next: string) {
    super(message)
    this.name = 'TransitUnavailable'
    this.trouble = trouble
    this.next = next
  }
}

export type KeyUnavailable = Pkcs11Unavailable | TransitUnavailable

export const isKeyUnavailable = (error: unknown): error is KeyUnavailable =>
  error instanceof Pkcs11Unavailable || error instanceof TransitUnavailable

/** It may work in a moment, and nothing has to be changed for that. */
export const mayPass = ({ trouble }: KeyUnavailable): boolean =>
  trouble === 'token' || trouble === 'away' || trouble === 'busy'

/** What was asked for is not there, where all else is well. */
export const isKeyMissing = (error: unknown): boolean => isKeyUnavailable(error) && error.trouble === 'key'

/** Something that is wrong where keys are. */
export type PlaceTrouble = {
  /** What is in trouble, as people call it: a token, a PKCS#11 module, Vault. */
  readonly place: string
  /** Sentences: what is wrong, and what to do. */
  readonly text: string
}

export const troubleText = ({ message, next }: KeyUnavailable): string => `${message}. ${next}`
