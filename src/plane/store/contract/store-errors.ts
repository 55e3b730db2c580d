// The two ways a store says no: it will not open as it is, or the world broke under a call.

export type StoreRefusedCode =
  | 'SQLITE_TOO_OLD'
  | 'POSTGRES_TOO_OLD'
  | 'DATABASE_REFUSED'
  | 'SCHEMA_TOO_NEW'
  | 'DATA_FOLDER_IN_USE'
  | 'NOT_A_STORE'
  | 'JOURNAL_UNREADABLE'
  | 'STORE_CORRUPT'
  /** Something of a domain is here, and the database or a file it cannot do without is not. */
  | 'DATA_FOLDER_INCOMPLETE'
  /** The parts that are here belong to different domains. */
  | 'DATA_FOLDER_MIXED'
  | 'KEY_MISSING'
  /** By the clock of this machine an authority is over that nothing here can replace. */
  | 'AUTHORITY_EXPIRED'
  /** The root is on another machine, and has not signed the first CA yet. */
  | 'CEREMONY_UNFINISHED'
  | 'SEALING_KEY_EXPOSED'
  /** A name that the plane is to have belongs to a node. */
  | 'NAME_HELD'

/**
 * The store does not open, or a plane does not start on what it finds there; nothing was changed. Trying again changes
 * nothing: a person has to put something back, so a plane exits with 78 and a supervisor stops restarting it.
 */
export class StoreRefused extends Error {
  readonly code: StoreRefusedCode
  /** What the operator does about it. */
  readonly next: string

  constructor(code: StoreRefusedCode, message: string, next: string) {
    super(message)
    this.name = 'StoreRefused'
    this.code = code
    this.next = next
  }
}

export const notAStore = (why: string): StoreRefused =>
  new StoreRefused(
    'NOT_A_STORE',
    `muster.db in the data folder is not a store of Muster: ${why}`,
    'Choose another data folder, move that file away, or restore it from a copy',
  )

export const storeCorrupt = (what: string, cause: unknown): StoreRefused =>
  new StoreRefused(
    'STORE_CORRUPT',
    // SQLite says where on a line of its own.
    `${what} is damaged: ${(cause instanceof Error ? cause.message : String(cause)).trim().replaceAll(/\s*\n\s*/g, ' ')}`,
    'Keep a copy as evidence, then restore it from a backup; muster store status shows where it lies. Check the disk',
  )

/** A full disk, a failing one, a store that is closed. Nothing of the call was kept unless its commit said so. */
export class StoreFault extends Error {
  constructor(what: string, cause: unknown) {
    super(`${what}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
    this.name = 'StoreFault'
  }
}

/** A flush of the store's files failed: what the disk holds is not known, so this process may not go on with it. */
export class StoreLost extends StoreFault {
  readonly code = 'DISK_FAILED'

  constructor(cause: unknown) {
    super('a flush to the disk of the store failed', cause)
    this.name = 'StoreLost'
  }
}

/** What the trouble was at first, without the words of the store. */
export const causeOf = (error: unknown): unknown =>
  error instanceof StoreFault && error.cause !== undefined ? causeOf(error.cause) : error

/** A cursor that is not a place in this journal: malformed, or of a chain that is not here. */
export class CursorUnknown extends Error {
  constructor() {
    super('the cursor is not a place in this journal')
    this.name = 'CursorUnknown'
  }
}

/** The store has lost commits that this process knows of: it writes nothing that grants anything. */
export class StoreInDoubt extends StoreFault {
  constructor(why: string) {
    super('nothing was committed', why)
    this.name = 'StoreInDoubt'
  }
}

/** The commit came from a replica that no longer leads, or has no lease: another may have decided otherwise meanwhile. */
export class StaleReplica extends StoreFault {
  constructor(why: string) {
    super('nothing was committed', why)
    this.name = 'StaleReplica'
  }
}

/** The commit has something in it for which the schema of the release before has no place. Nothing is wrong with the store. */
export class UpgradeUnfinished extends StoreFault {
  /** What has no place, and which replicas are waited for. */
  readonly what: string

  constructor(what: string) {
    super('nothing was committed', what)
    this.name = 'UpgradeUnfinished'
    this.what = what
  }
}
