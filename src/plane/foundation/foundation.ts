// The foundation of a plane: its clock, its keys, its store. `muster ca init` needs no more than this. Existing data is examined
// before anything is written: a start that is refused has changed nothing.

import * as path from 'node:path'
import { keyId, loadPrivateKey } from '#pki/keys.ts'
import { systemClock, type Clock } from '#platform/clock.ts'
import { makeFolder } from '#platform/files.ts'
import { namesIn } from '#platform/folder.ts'
import type { Log } from '#platform/log.ts'
import { pathExists, removeFolder } from '#platform/paths.ts'
import { faultOfPrivateFolder, ownerOfFolder } from '#platform/private-folder.ts'
import { systemRandom, type Random } from '#platform/random.ts'
import { sqliteTrouble } from '#platform/sqlite.ts'
import { systemTimers, type Timers } from '#platform/timers.ts'
import type { KeySeal } from '#domain/operators/operator-keys.ts'
import { openKeySeal } from '#plane/keys/operator-key-seal.ts'
import { openRowSeal, type RowSeal } from '#plane/seals/row-seal.ts'
import { openKeyCustody, sealedNameOf, type KeyCustody, type KeyName } from '#plane/keys/key-custody.ts'
import { openKeysElsewhere } from '#plane/keys/keys-elsewhere.ts'
import { findSealingKey, refuseExposed, type FoundSealingKey } from '#plane/keys/sealing-key.ts'
import { StoreRefused } from '#plane/store/contract/store-errors.ts'
import { lockDataFolder, refuseLocked } from '#plane/store/sqlite/data-folder-lock.ts'
import { openDiskReserve, type DiskReserve } from '#plane/store/sqlite/disk-reserve.ts'
import { openSqliteStore } from '#plane/store/sqlite/open-sqlite-store.ts'
import { openJournalWitness, type JournalWitness } from '#plane/store/journal/journal-witness.ts'
import type { Store, StoreCore } from '#plane/store/contract/store.ts'
import { damagedWitnesses } from '#plane/store/journal/witness-files.ts'
import { refuseBeforeAuthority } from './clock-check.ts'
import { ConfigProblem, type PlaneConfig } from '#plane/config/config.ts'
import { initialiseDomain, type Initialised } from './initialise.ts'
import { keepWitness, verifiedAgainst, type WitnessKeeping } from './keep-witness.ts'
import { openHeadSigner } from './journal-key.ts'
import { refuseRunningPlane } from './operator-socket.ts'
import { checkKeys, examineFolder, firstRootOf, keepDomainOfFolder, refuseOtherDomain } from './data-folder.ts'
import { noteFirstStart, setLeftoversAside, watchFolder } from './first-start.ts'
import { refuseLostKeys, type LostKey, type ReplaceableKey } from '#plane/keys/key-inventory.ts'

export type Foundation = {
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  readonly log: Log
  readonly store: Store
  readonly witness: JournalWitness
  readonly custody: KeyCustody
  readonly keySeal: KeySeal
  readonly rowSeal: RowSeal
}

/** With a domain in it. */
export type LaidFoundation = Foundation & Initialised & { readonly keeping: WitnessKeeping }

export type StartOptions = {
  /** Keys that are known to be lost and are to be made anew. */
  readonly replacing: readonly ReplaceableKey[]
  /** Called with the lost and the existing keys, where there is a domain. If it throws, the start ends with nothing written. */
  readonly examined: (lost: readonly LostKey[], names: readonly KeyName[]) => void
  /** What is said where there is no domain, before anything is written; null: one is made. */
  readonly needsDomain: string | null
  /** Called before a new domain is made: what would fail afterwards should fail now. */
  readonly beforeFirst: () => Promise<void>
}

export const asUsual: StartOptions = {
  replacing: [],
  examined: () => {},
  needsDomain: null,
  beforeFirst: async () => {},
}

export const layFoundation = async (
  config: PlaneConfig,
  log: Log,
  options: StartOptions = asUsual,
): Promise<LaidFoundation> => {
  const { dataFolder } = config
  const folderWasThere = pathExists(dataFolder)
  makeFolder(dataFolder, 0o700)
  const fault = faultOfPrivateFolder(dataFolder)
  if (fault !== null) throw new ConfigProblem(`the data folder ${dataFolder} ${fault}: ${remedyFor(dataFolder)}`)
  const base: StoreCore = { clock: systemClock, timers: systemTimers, random: systemRandom, log }
  let domainName = config.domainName
  let domainRoot: string | null = null
  const witness = openJournalWitness()
  const asked = (): string => domainName
  // Only what a start on a new folder has made itself is ever taken back.
  let undo = (): void => {}
  try {
    const { keySeal, rowSeal, ...opened } = await (config.store.kind === 'sqlite'
      ? openOwnStore(base, config, witness, asked, options)
      : // A plane on its own file has no use for the driver, and starts sooner without.
        (await import('./shared-store.ts')).openSharedStore(base, config, config.store.target, witness, asked, options))
    undo = opened.undo
    let keeping: WitnessKeeping | null = null
    const store: Store = {
      ...opened.store,
      journal: verifiedAgainst(witness, opened.store.journal),
      warnings: () => [...opened.store.warnings(), ...damagedWitnesses(dataFolder)],
      async close() {
        keeping?.stop()
        opened.custody.elsewhere.close()
        await opened.store.close()
      },
    }
    const foundation = { ...base, store, witness, custody: loggingSetAside(opened.custody, log), keySeal, rowSeal }
    try {
      const learnName = async (): Promise<boolean> => {
        const domain = await store.get('domain', 'domain')
        domainName = domain?.value.name ?? domainName
        domainRoot = firstRootOf((await store.issuers()).map(({ value }) => value))?.id ?? null
        return domain !== null
      }
      if (await learnName()) {
        await refuseBeforeAuthority(foundation)
        await checkRows(foundation, config, options)
      }
      const owner = { domainName: asked, domainRoot: () => domainRoot, replica: config.replica }
      keeping = await keepWitness(foundation, owner, dataFolder)
      const initialised = await initialiseDomain(foundation, config, options.beforeFirst)
      undo = () => {}
      // Another plane may have made it meanwhile, under another name.
      await learnName()
      keepDomainOfFolder(
        dataFolder,
        (await store.issuers()).map(({ value }) => value),
      )
      return { ...foundation, ...initialised, keeping }
    } catch (error) {
      await store.close()
      throw error
    }
  } catch (error) {
    undo()
    if (!folderWasThere) removeEmpty(dataFolder)
    throw error
  }
}

/** The folder must not change its owner: the plane that it belongs to would not start any more. */
const remedyFor = (dataFolder: string): string => {
  const owner = ownerOfFolder(dataFolder)
  return owner === null || owner === process.getuid?.() || owner === 0
    ? 'chmod 700'
    : `run this as its owner: sudo -u '#${owner}'`
}

/** A key that leaves service is named in the log: an operator who misses it knows where it is. */
const loggingSetAside = (custody: KeyCustody, log: Log): KeyCustody => ({
  ...custody,
  async setAside(name) {
    await custody.setAside(name)
    const isKept = custody.asideNames().some((one) => sealedNameOf(one) === sealedNameOf(name))
    if (isKept) log.warn({ key: `set-aside/${sealedNameOf(name)}` }, 'a key that no row names was set aside')
  },
})

/** As on SQLite before the store is opened: here for both stores, on what the store itself says. */
const checkRows = async (
  { store, custody, clock }: Foundation,
  { dataFolder, issuerKey }: PlaneConfig,
  { replacing }: StartOptions,
): Promise<void> => {
  const issuers = (await store.issuers()).map(({ value }) => value)
  refuseOtherDomain(dataFolder, issuers)
  // Behind the rows: another replica may have made an authority since the keys were read. A key is kept before its row.
  await custody.refresh()
  const names = custody.names()
  // By now the journal's is there, or was made.
  refuseLostKeys({ issuers, names, headKey: 'here', issuerKey, nowMs: clock.nowMs() }, replacing)
}

export type OpenedStore = Pick<Foundation, 'store' | 'custody' | 'keySeal' | 'rowSeal'> & {
  /** Takes back what was made before there is a domain; the store is closed by then. */
  undo(): void
}

const openOwnStore = async (
  base: StoreCore,
  config: PlaneConfig,
  witness: JournalWitness,
  domainName: () => string,
  { replacing, beforeFirst, examined, needsDomain }: StartOptions,
): Promise<OpenedStore> => {
  const { dataFolder, sealKeyFile: keyFile, credentialsFolder, issuerKey } = config
  const seal = (whenNone: 'make' | 'refuse'): FoundSealingKey => {
    const found = findSealingKey({ dataFolder, keyFile, credentialsFolder }, base.random, whenNone)
    refuseExposed(found, dataFolder, credentialsFolder)
    return found
  }
  // Deleting the lock file does not stop the plane that holds the lock.
  await refuseRunningPlane(dataFolder)
  refuseLocked(dataFolder)
  const { state, stored } = inReserve(base, dataFolder, () => examineFolder(dataFolder))
  if (state === 'domain') {
    const facts = { issuerKey, nowMs: base.clock.nowMs(), replacing, examined, keyIdOf }
    refuseOtherDomain(dataFolder, stored.issuers)
    checkKeys(dataFolder, stored, seal('refuse').key, facts)
  }
  if (state !== 'domain' && needsDomain !== null) throw new ConfigProblem(needsDomain)
  const takeBack = watchFolder(dataFolder)
  const lock = lockDataFolder(dataFolder)
  let isHandedOn = false
  const undo = (): void => (state === 'domain' ? undefined : takeBack())
  try {
    if (state !== 'domain') await prepareFirstStart(dataFolder, base, beforeFirst)
    const sealing = seal(state === 'domain' ? 'refuse' : 'make')
    const signer = openHeadSigner(
      dataFolder,
      sealing.key,
      state === 'domain' && !replacing.includes('journal') ? 'refuse' : 'make',
    )
    isHandedOn = true
    const store = await openSqliteStore(base, { folder: dataFolder, lock, author: { signer, domainName }, witness })
    const keySeal = openKeySeal(sealing.key, domainName)
    const rowSeal = openRowSeal(sealing.key, domainName)
    const elsewhere = openKeysElsewhere({ ...config.tokens, credentialsFolder }, base)
    const custody = openKeyCustody(path.join(dataFolder, 'keys'), sealing, elsewhere)
    return { store, custody, keySeal, rowSeal, undo }
  } catch (error) {
    if (!isHandedOn) lock.release()
    undo()
    throw error
  }
}

/** Reading needs room for the index of the log where a crash has left none: on a full disk it is taken from the reserve. */
const inReserve = <T>({ log, clock }: StoreCore, dataFolder: string, look: () => T): T => {
  let reserve: DiskReserve | null = null
  for (;;) {
    try {
      return look()
    } catch (error) {
      if (sqliteTrouble(error) !== 'full') throw error
      reserve ??= openDiskReserve(dataFolder, log, clock)
      if (!reserve.release()) throw error
    }
  }
}

/** With the lock held: another plane may have made a domain here since the folder was looked at. */
const prepareFirstStart = async (
  dataFolder: string,
  { clock, log }: StoreCore,
  beforeFirst: () => Promise<void>,
): Promise<void> => {
  if (examineFolder(dataFolder).state === 'domain') throw madeMeanwhile(dataFolder)
  await beforeFirst()
  noteFirstStart(dataFolder, { rootKeyFile: null, root: null })
  setLeftoversAside(dataFolder, clock.nowMs(), log)
}

const madeMeanwhile = (dataFolder: string): StoreRefused =>
  new StoreRefused(
    'DATA_FOLDER_INCOMPLETE',
    `another plane has just made a domain in the data folder ${dataFolder}`,
    'Start it again',
  )

const keyIdOf = (pem: string): string => keyId(loadPrivateKey(pem).spki)

const removeEmpty = (folder: string): void => {
  if (namesIn(folder).length === 0) removeFolder(folder)
}
