// The executables of the agent that this plane hands out: files of one folder, known by the digests of their content. The folder is
// looked at again from time to time, so that a new release needs no restart.

import * as path from 'node:path'
import { namesIn } from '#platform/folder.ts'
import type { Log } from '#platform/log.ts'
import { isFolder } from '#platform/paths.ts'
import { faultOfServedFolder, markOfFile, openServedFile, unreadable, type ServedFile } from '#platform/served-file.ts'
import type { AgentArchitecture } from '#wire/enrollment/agent-api.ts'

export type AgentFile = {
  readonly name: string
  readonly architecture: AgentArchitecture
  /** New bundles name it. */
  readonly current: boolean
  readonly content: ServedFile
}

export type AgentFiles = {
  /** Null: none of the folders is there. */
  folder(): string | null
  all(): readonly AgentFile[]
  byDigest(sha256: string): AgentFile | null
  /** Files that are not handed out, each in a sentence. */
  faults(): readonly string[]
  /** Digests are being computed. */
  reading(): boolean
  /** Takes in what has changed. */
  look(): Promise<void>
}

/** `muster-linux-x64.gz` is what new bundles name; with anything between, a release that older bundles name. */
const fileShape = /^muster-(?:[\w.+~-]+-)?linux-(x64|arm64)\.gz$/
const mostFiles = 16

/** `folders`: of these the first that is there. The first look has begun when it returns; nothing waits for it. */
export const openAgentFiles = (folders: readonly string[], log: Log): AgentFiles => {
  let folder: string | null = null
  let files: readonly AgentFile[] = []
  let faults: readonly string[] = []
  let looking: Promise<void> | null = null

  const look = async (): Promise<void> => {
    const found: AgentFile[] = []
    const troubles: string[] = []
    folder = folders.find((one) => orFault(() => isFolder(one), one, troubles)) ?? null
    const cannotBeTold = folder === null && troubles.length > 0
    const [asked, ...others] = folders
    if (folder === null && !cannotBeTold && asked !== undefined && others.length === 0)
      troubles.push(`${asked} is not a folder`)
    const names = cannotBeTold ? null : orFault(() => namesOf(folder, troubles), folder ?? '', troubles)
    // What was read before is open and whole. It stays until the folder can be read again.
    if (names === null) found.push(...files)
    for (const name of names ?? []) {
      const read = await readFile(folder ?? '', name, files)
      if ('fault' in read) troubles.push(read.fault)
      else found.push(read)
    }
    const [filesBefore, faultsBefore] = [files, faults]
    files = found
    faults = troubles
    for (const before of filesBefore) if (!found.includes(before)) before.content.giveUp()
    tell(log, filesBefore, found, faultsBefore, troubles)
  }
  const lookOnce = (): Promise<void> =>
    (looking ??= look().finally(() => {
      looking = null
    }))

  lookOnce().catch((error: unknown) => log.error({ err: error }, 'the agents to hand out could not be read'))
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

const namesOf = (folder: string | null, troubles: string[]): readonly string[] => {
  if (folder === null) return []
  const fault = faultOfServedFolder(folder)
  if (fault !== null) {
    troubles.push(fault)
    return []
  }
  const names = namesIn(folder).filter((name) => fileShape.test(name))
  if (names.length > mostFiles)
    troubles.push(`${folder} has ${names.length} agents, of which ${mostFiles} are handed out`)
  // What new bundles name comes first.
  return [...names.filter(isCurrent), ...names.filter((name) => !isCurrent(name))].slice(0, mostFiles)
}

const isCurrent = (name: string): boolean => /^muster-linux-(x64|arm64)\.gz$/.test(name)

const gzipMagic = Buffer.from([0x1f, 0x8b])

/** Does not reject: one file that cannot be read must not keep the others from being handed out. */
const readFile = async (
  folder: string,
  name: string,
  before: readonly AgentFile[],
): Promise<AgentFile | { readonly fault: string }> => {
  const file = path.join(folder, name)
  try {
    const known = before.find((one) => one.name === name && one.content.mark === markOfFile(file))
    if (known !== undefined && (await known.content.isUnchanged())) return known
  } catch (error) {
    return { fault: unreadable(file, error) }
  }
  const content = await openServedFile(file)
  if ('fault' in content) return content
  const fault = await faultOfStart(file, content)
  if (fault !== null) {
    content.giveUp()
    return { fault }
  }
  const architecture = fileShape.exec(name)?.[1] === 'arm64' ? 'arm64' : 'x64'
  return { name, architecture, current: isCurrent(name), content }
}

const faultOfStart = async (file: string, content: ServedFile): Promise<string | null> => {
  const start = Buffer.alloc(gzipMagic.length)
  try {
    await content.read(start, 0)
  } catch (error) {
    return unreadable(file, error)
  }
  return start.equals(gzipMagic) ? null : `${file} is not compressed by gzip`
}

const tell = (
  log: Log,
  before: readonly AgentFile[],
  now: readonly AgentFile[],
  faultsBefore: readonly string[],
  faults: readonly string[],
): void => {
  for (const one of now)
    if (!before.includes(one))
      log.info({ file: one.name, sha256: one.content.sha256, bytes: one.content.bytes }, 'an agent is handed out')
  for (const one of before)
    if (!now.includes(one)) log.info({ file: one.name, sha256: one.content.sha256 }, 'an agent is no longer handed out')
  for (const fault of faults) if (!faultsBefore.includes(fault)) log.warn({ fault }, 'an agent is not handed out')
}
