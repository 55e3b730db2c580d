// The files of one folder that this plane hands out, known by the digests of their content. The folder is looked at again from time to
// time, so that a new file needs no restart.

import * as path from 'node:path'
import { namesIn } from '#platform/folder.ts'
import type { Log } from '#platform/log.ts'
import { isFolder } from '#platform/paths.ts'
import { faultOfServedFolder, markOfFile, openServedFile, unreadable, type ServedFile } from '#platform/served-file.ts'

export type FolderFile = { readonly name: string; readonly content: ServedFile }

export type ServedFolder<F extends FolderFile = FolderFile> = {
  /** Null: none of the folders is there. */
  folder(): string | null
  all(): readonly F[]
  byDigest(sha256: string): F | null
  /** Files that are not handed out, each in a sentence. */
  faults(): readonly string[]
  /** Digests are being computed. */
  reading(): boolean
  /** Takes in what has changed. */
  look(): Promise<void>
}

export type FolderRules<F extends FolderFile> = {
  /** Of one file and of several, in messages: an agent, agents. */
  readonly one: string
  readonly several: string
  /** Of the names in the folder those that are handed out, the most important first. */
  readonly chosen: (names: readonly string[]) => readonly string[]
  readonly most: number
  readonly describe: (file: FolderFile) => F
  /** Null: nothing is wrong with it. */
  readonly faultOf: (file: string, content: ServedFile) => Promise<string | null>
}

/** `folders`: of these the first that is there. The first look has begun when it returns; nothing waits for it. */
export const openServedFolder = <F extends FolderFile>(
  folders: readonly string[],
  rules: FolderRules<F>,
  log: Log,
): ServedFolder<F> => {
  let folder: string | null = null
  let files: readonly F[] = []
  let faults: readonly string[] = []
  let looking: Promise<void> | null = null

  const look = async (): Promise<void> => {
    const found: F[] = []
    const troubles: string[] = []
    folder = folders.find((one) => orFault(() => isFolder(one), one, troubles)) ?? null
    const cannotBeTold = folder === null && troubles.length > 0
    const [asked, ...others] = folders
    if (folder === null && !cannotBeTold && asked !== undefined && others.length === 0)
      troubles.push(`${asked} is not a folder`)
    const names = cannotBeTold ? null : orFault(() => namesOf(folder, rules, troubles), folder ?? '', troubles)
    // What was read before is open and whole. It stays until the folder can be read again.
    if (names === null) found.push(...files)
    for (const name of names ?? []) {
      const read = await readFile(folder ?? '', name, rules, files)
      if ('fault' in read) troubles.push(read.fault)
      else found.push(read)
    }
    const [filesBefore, faultsBefore] = [files, faults]
    files = found
    faults = troubles
    for (const before of filesBefore) if (!found.includes(before)) before.content.giveUp()
    tell(log, rules, filesBefore, found, faultsBefore, troubles)
  }
  const lookOnce = (): Promise<void> =>
    (looking ??= look().finally(() => {
      looking = null
    }))

  lookOnce().catch((error: unknown) => log.error({ err: error }, `the ${rules.several} to hand out could not be read`))
  return {
    folder: () => folder,
    all: () => files,
    byDigest: (sha256) => files.find(({ content }) => content.sha256 === sha256) ?? null,
    faults: () => faults,
    reading: () => looking !== null,
    look: lookOnce,
  }
}

/** Null: it cannot be read, and why is among the troubles. */
const orFault = <T>(look: () => T, place: string, troubles: string[]): T | null => {
  try {
    return look()
  } catch (error) {
    troubles.push(unreadable(place, error))
    return null
  }
}

type NamingRules = Pick<FolderRules<FolderFile>, 'one' | 'several' | 'chosen' | 'most'>

const namesOf = (folder: string | null, rules: NamingRules, troubles: string[]): readonly string[] => {
  if (folder === null) return []
  const fault = faultOfServedFolder(folder)
  if (fault !== null) {
    troubles.push(fault)
    return []
  }
  const { several, chosen, most } = rules
  const names = chosen(namesIn(folder))
  if (names.length > most) troubles.push(`${folder} has ${names.length} ${several}, of which ${most} are handed out`)
  return names.slice(0, most)
}

/** Does not reject: one file that cannot be read must not keep the others from being handed out. */
const readFile = async <F extends FolderFile>(
  folder: string,
  name: string,
  { describe, faultOf }: Pick<FolderRules<F>, 'describe' | 'faultOf'>,
  before: readonly F[],
): Promise<F | { readonly fault: string }> => {
  const file = path.join(folder, name)
  try {
    const known = before.find((one) => one.name === name && one.content.mark === markOfFile(file))
    if (known !== undefined && (await known.content.isUnchanged())) return known
  } catch (error) {
    return { fault: unreadable(file, error) }
  }
  const content = await openServedFile(file)
  if ('fault' in content) return content
  const fault = await faultOf(file, content)
  if (fault !== null) {
    content.giveUp()
    return { fault }
  }
  return describe({ name, content })
}

const tell = (
  log: Log,
  { one: what }: NamingRules,
  before: readonly FolderFile[],
  now: readonly FolderFile[],
  faultsBefore: readonly string[],
  faults: readonly string[],
): void => {
  for (const one of now)
    if (!before.includes(one))
      log.info({ file: one.name, sha256: one.content.sha256, bytes: one.content.bytes }, `${what} is handed out`)
  for (const one of before)
    if (!now.includes(one)) log.info({ file: one.name, sha256: one.content.sha256 }, `${what} is no longer handed out`)
  for (const fault of faults) if (!faultsBefore.includes(fault)) log.warn({ fault }, `${what} is not handed out`)
}
