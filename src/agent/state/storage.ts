// The disk under the agent. Some of it is kept back, really written, so that a renewal still fits on a full disk; and while
// there is little left, what is only good to know is not written, before it costs what has to be (003, disk safety).

import * as path from 'node:path'
import type { Clock } from '#platform/clock.ts'
import {
  allocatedBytes,
  allocateFile,
  diskSpace,
  incompressible,
  mountPointOf,
  writeFaultOf,
} from '#platform/disk-space.ts'
import { errno, makeFolder, removeFile } from '#platform/files.ts'
import { diskTrouble } from './disk-trouble.ts'
import type { CredentialStore } from './credential-store.ts'
import type { NotKept } from './identity-keeper.ts'
import type { Trouble } from '#agent/core/trouble.ts'

/** By what is written there: keys and certificates, the record, requests that are repeated, the workload. */
export type FreeBytes = {
  readonly identity: number
  readonly diagnostic: number
  readonly retry: number
  readonly runtime: number
}

export type AgentStorage = {
  /** Whether the room kept back for credentials is there in full; true where no credentials are written. */
  reserve(): boolean
  /** Of the last write that failed, or what keeps the disk from being written; null when all is well. */
  errno(): string | null
  freeBytes(): FreeBytes
  /** By mount point, each once. */
  mounts(): readonly { readonly mount: string; readonly availableBytes: number }[]
  /** Little room is left: what is only good to know is dropped. */
  pressure(): boolean
  /** Full or read-only: what has to be written may not fit any more. Null when it does. */
  fault(): Trouble | null
  identityWritable(): boolean
  diagnosticsWritable(): boolean
  /** Looks at the disk again, and makes the reserve whole where there is room. */
  check(): void
  /** What to say when credentials could not be kept; `what` says what that costs. */
  notKept(kept: NotKept, what: string): Trouble
  /** Runs a write of credentials; one for which there is no room is run again in the room of the reserve. Throws what it throws. */
  credentialWrite(write: () => void): void
  /** How a write of the record or the status went: null, or what was thrown. */
  diagnosticWrite(error: unknown): void
}

/** Sixteen renewals, each with the file beside it, of an identity with two chains of five certificates. */
export const reserveBytes = 256 * 1024
const reserveName = 'reserve'
const lookEveryMs = 1_000
const rebuildEveryMs = 10_000
/** Below this a renewal might not fit without the reserve. */
const fullBytes = 64 * 1024
const pressureBytes = 16 * 1024 * 1024

/**
 * `keysOnDisk`: an agent whose keys stay in memory has nothing to keep room for. `writeFailed`: called with the errno of each
 * write of the record that failed.
 */
export const openStorage = (
  clock: Clock,
  stateFolder: string,
  keysOnDisk: boolean,
  writeFailed: (errno: string) => void,
): AgentStorage => {
  const reserveFile = path.join(stateFolder, reserveName)
  const mount = mountPointOf(stateFolder)
  let space = diskSpace(stateFolder)
  let writeFault = writeFaultOf(stateFolder)
  let whole = allocatedBytes(reserveFile) >= reserveBytes
  let reserveErrno: string | null = null
  let credentialErrno: string | null = null
  let diagnosticErrno: string | null = null
  let lookedAtMs = -Infinity
  let rebuiltAtMs = -Infinity

  const look = (): void => {
    if (clock.monotonicMs() - lookedAtMs < lookEveryMs) return
    lookedAtMs = clock.monotonicMs()
    space = diskSpace(stateFolder)
    writeFault = writeFaultOf(stateFolder)
  }
  const rebuild = (): void => {
    if (!keysOnDisk || whole) return
    rebuiltAtMs = clock.monotonicMs()
    try {
      makeFolder(stateFolder, 0o700)
      allocateFile(reserveFile, incompressible(reserveBytes))
      whole = allocatedBytes(reserveFile) >= reserveBytes
      reserveErrno = null
    } catch (error) {
      reserveErrno = errno(error) ?? 'EIO'
    }
  }
  const release = (): void => {
    removeFile(reserveFile)
    whole = false
  }
  const available = (): number => space?.availableBytes ?? Number.MAX_SAFE_INTEGER
  const faultCode = (): string | null => writeFault ?? credentialErrno ?? (available() < fullBytes ? 'ENOSPC' : null)
  look()
  rebuild()

  return {
    reserve: () => whole || !keysOnDisk,
    errno: () => faultCode() ?? reserveErrno ?? diagnosticErrno,
    freeBytes: () => {
      look()
      const here = space?.availableBytes ?? 0
      return { identity: here, diagnostic: here, retry: here, runtime: diskSpace('/')?.availableBytes ?? 0 }
    },
    mounts: () => {
      look()
      const own = { mount, availableBytes: space?.availableBytes ?? 0 }
      return mount === '/' ? [own] : [own, { mount: '/', availableBytes: diskSpace('/')?.availableBytes ?? 0 }]
    },
    pressure: () => {
      look()
      return space !== null && space.availableBytes < Math.min(pressureBytes, space.totalBytes / 10)
    },
    fault: () => {
      look()
      const code = faultCode()
      if (code === null) return null
      const facts = { errno: code, path: stateFolder, freeBytes: available() }
      return diskTrouble(facts, whole ? 'Only the reserve is left to write in' : 'What has to be kept may not be')
    },
    identityWritable: () => writeFault === null && (credentialErrno === null || whole),
    diagnosticsWritable: () => writeFault === null && diagnosticErrno === null,
    check: () => {
      look()
      if (!whole && writeFault === null && clock.monotonicMs() - rebuiltAtMs >= rebuildEveryMs) rebuild()
    },
    notKept: (kept, what) => {
      look()
      return diskTrouble({ errno: kept.errno ?? 'EIO', path: stateFolder, freeBytes: available() }, what)
    },
    credentialWrite: (write) => {
      try {
        inReserve(write, whole, release)
        credentialErrno = null
      } catch (error) {
        credentialErrno = errno(error) ?? 'EIO'
        throw error
      } finally {
        // At once, before another process takes the room.
        rebuild()
      }
    },
    diagnosticWrite: (error) => {
      diagnosticErrno = error === null ? null : (errno(error) ?? 'EIO')
      if (diagnosticErrno !== null) writeFailed(diagnosticErrno)
    },
  }
}

const noRoom = (error: unknown): boolean => ['ENOSPC', 'EDQUOT'].includes(errno(error) ?? '')

const inReserve = (write: () => void, whole: boolean, release: () => void): void => {
  try {
    write()
  } catch (error) {
    if (!whole || !noRoom(error)) throw error
    release()
    write()
  }
}

/** Credentials that are written in the reserve when nothing else is left. */
export const withReserve = (store: CredentialStore, storage: AgentStorage): CredentialStore => ({
  ...store,
  save: (credentials) => storage.credentialWrite(() => store.save(credentials)),
})
