// The credentials the agent runs under now, and whether the disk has them too.

import { errno } from '#platform/files.ts'
import type { CredentialStore } from './credential-store.ts'
import type { Credentials, Identity } from './credentials.ts'

export type Kept = { readonly persisted: true } | NotKept
/** `errno` where it was the disk that said no. */
export type NotKept = { readonly persisted: false; readonly detail: string; readonly errno?: string }

export type IdentityKeeper = {
  credentials(): Credentials
  /** In force at once, whether or not they could be written; what could not is tried again by `retry`. */
  keep(next: Credentials): Kept
  /** Only in force if they are durable. For requests, which must not be sent before (ruling 4). */
  keepFirst(next: Credentials): Kept
  /** Writes what could not be written before. */
  retry(): Kept
  isPersisted(): boolean
  /** Resolves when the current certificate is another than this one. */
  replaced(serial: string, signal: AbortSignal): Promise<void>
}

/** Trouble with the disk is something to report, not something to die of. */
export const attempt = (write: () => void): Kept => {
  try {
    write()
    return { persisted: true }
  } catch (error) {
    const detail = error instanceof Error ? error.message.slice(0, 200) : 'unknown'
    return { persisted: false, detail, errno: errno(error) ?? 'EIO' }
  }
}

/** Throws DamagedCredentials. */
export const openKeeper = (store: CredentialStore): IdentityKeeper => {
  let credentials = store.load()
  let persisted = true
  const waiting = new Set<() => void>()

  const write = (next: Credentials): Kept =>
    attempt(() => (profileForbidsDisk(next.identity) ? store.erase() : store.save(next)))
  const enforce = (next: Credentials, result: Kept): void => {
    credentials = next
    persisted = result.persisted
    for (const wake of waiting) wake()
  }

  return {
    credentials: () => credentials,
    keep: (next) => {
      const result = write(next)
      enforce(next, result)
      return result
    },
    keepFirst: (next) => {
      const result = write(next)
      if (result.persisted) enforce(next, result)
      return result
    },
    retry: () => {
      const result = write(credentials)
      persisted = result.persisted
      return result
    },
    isPersisted: () => persisted,
    replaced: (serial, signal) =>
      new Promise((resolve) => {
        const wake = (): void => {
          if (!signal.aborted && credentials.identity?.current.serial === serial) return
          waiting.delete(wake)
          signal.removeEventListener('abort', wake)
          resolve()
        }
        waiting.add(wake)
        signal.addEventListener('abort', wake)
        wake()
      }),
  }
}

/** The revision of the roots of issuers that are on the disk: nothing is confirmed that the next start may not have. */
export const keptIssuerRoots = ({
  credentials,
  isPersisted,
}: Pick<IdentityKeeper, 'credentials' | 'isPersisted'>): number =>
  isPersisted() ? (credentials().identity?.issuerRoots.revision ?? 0) : 0

/** A key meant for a TPM this agent cannot use yet is not put in a file instead. */
const profileForbidsDisk = (identity: Identity | null): boolean =>
  identity !== null && identity.profile.key_storage !== 'file'
