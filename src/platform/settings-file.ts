// A file of settings, in TOML: one line KEY = VALUE for each, and no tables. What is unknown, of another type or twice is named with its
// line; nothing is guessed.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { closestTo } from './closest-word.ts'
import { errno, processOwner, readShort } from './files.ts'
import type { FileSettings } from './given-settings.ts'
import { keyName, type SettingKind, type Settings } from './setting.ts'
import { parseToml, type TomlValue } from './toml.ts'
import { faultOfPath } from './trusted-path.ts'

const longestFile = 64 * 1024

/** In the place of a file: none is read, not even the one in the usual place. */
export const noSettingsFile = 'off'

/** What it means that this user cannot enter the folder of the usual file, and so cannot know whether there is one. */
type ClosedFolder = 'is a fault' | 'has no file'

/** `named`: by an option or a variable; it has to be there. Null: there is none. */
export const readSettingsFile = (
  named: string | undefined,
  usual: string,
  settings: Settings,
  closedFolder: ClosedFolder = 'is a fault',
): FileSettings | null => {
  const read = readTextOf(named, usual, closedFolder)
  if (read === null) return null
  const { file } = read
  if ('text' in read) return parseSettingsFile(file, read.text, settings)
  return { file, entries: new Map(), problems: [`${file} ${read.fault}`] }
}

/** The path that one key has, for commands that need nothing else of the file. Null: it has none, or cannot be used. */
export const pathInSettingsFile = (named: string | undefined, usual: string, key: string): string | null => {
  const read = readTextOf(named, usual, 'has no file')
  const root = read !== null && 'text' in read ? parseToml(read.text) : null
  const value = root?.kind === 'table' ? root.entries.get(key) : undefined
  return read !== null && value?.kind === 'string' && value.value !== '' ? from(read.file, value.value) : null
}

type TextOrFault = { readonly text: string } | { readonly fault: string }
type FileText = { readonly file: string } & TextOrFault

const readTextOf = (named: string | undefined, usual: string, closedFolder: ClosedFolder): FileText | null => {
  if (named === noSettingsFile) return null
  const isNamed = named !== undefined && named !== ''
  const file = path.resolve(isNamed ? named : usual)
  try {
    return { file, ...readTrusted(file) }
  } catch (error) {
    if (errno(error) === 'ENOENT') return isNamed ? { file, fault: 'does not exist' } : null
    if (!isNamed && errno(error) === 'EACCES' && !canBeSeen(file)) {
      return closedFolder === 'has no file' ? null : { file, fault: behindClosedFolder(file) }
    }
    return { file, fault: `cannot be read: ${errno(error) ?? String(error)}` }
  }
}

/** What is checked is the file that is read: by its name it could be another one a moment later. */
const readTrusted = (file: string): TextOrFault => {
  // A pipe must not keep a start waiting for a writer.
  const fd = fs.openSync(file, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK)
  try {
    const fault = untrusted(file, fs.fstatSync(fd)) ?? replaceable(file)
    if (fault !== null) return { fault }
    const read = readShort(fd, longestFile)
    return read === 'too-long' ? { fault: `has more than ${longestFile} bytes` } : read
  } finally {
    fs.closeSync(fd)
  }
}

const behindClosedFolder = (file: string): string =>
  `cannot be looked for: user ${processOwner().uid} may not enter ${path.dirname(file)}; allow it, or start with --config off`

const canBeSeen = (file: string): boolean => {
  try {
    fs.statSync(file)
    return true
  } catch {
    return false
  }
}

/** Who may write it decides which keys a plane uses, and where it sends alerts. */
const untrusted = (file: string, stats: fs.Stats): string | null => {
  if (!stats.isFile()) return 'is not a file'
  const { uid, mode } = stats
  const own = processOwner().uid
  if (uid !== 0 && uid !== own) return `belongs to user ${uid}, not to root or to user ${own}`
  if ((mode & 0o022) === 0) return null
  return `can be written by other users than its owner (mode ${(mode & 0o7777).toString(8)}): chmod go-w ${file}`
}

/** Who may write one of its folders may put another file in its place. */
const replaceable = (file: string): string | null => {
  const trust = { uid: processOwner().uid, stickyFolders: true, readOnlyMounts: true }
  const fault = faultOfPath(file, trust, { kind: 'file', links: 'followed' })
  return fault === null ? null : `could be replaced by another user: ${fault}`
}

export const parseSettingsFile = (file: string, text: string, settings: Settings): FileSettings => {
  const root = parseToml(text)
  if (root.kind === 'invalid') return { file, entries: new Map(), problems: [`${file} line ${root.line}: ${root.why}`] }
  const names = new Map(Object.keys(settings).map((name) => [keyName(name), name]))
  const entries = new Map<string, { readonly line: number; readonly texts: readonly string[] }>()
  const problems: string[] = []
  for (const [key, value] of root.entries) {
    const name = names.get(key)
    const kind = name === undefined ? undefined : settings[name]?.kind
    if (name === undefined || kind === undefined) {
      problems.push(`${file} line ${value.line}: ${unknownKey(key, value, [...names.keys()])}`)
      continue
    }
    const texts = textsOf(kind, value)
    if (texts === null) problems.push(`${file} line ${value.line}: ${key} is written ${written[kind](key)}`)
    else entries.set(name, { line: value.line, texts: kind === 'path' ? texts.map((one) => from(file, one)) : texts })
  }
  return { file, entries, problems }
}

const from = (file: string, place: string): string => path.resolve(path.dirname(file), place)

const unknownKey = (key: string, value: TomlValue, known: readonly string[]): string => {
  const isTable = value.kind === 'table' || (value.kind === 'list' && value.items.some(({ kind }) => kind === 'table'))
  if (isTable) return `[${key}] is a table, and there are none here: write KEY = VALUE`
  const meant = closestTo(key.replaceAll('-', '_'), known)
  return `${key} is unknown${meant === null ? `; known are ${known.join(', ')}` : `; did you mean ${meant}?`}`
}

/** Null: of another type. Empty texts are of none. */
const textsOf = (kind: SettingKind, value: TomlValue): readonly string[] | null => {
  switch (kind) {
    case 'number':
      return value.kind === 'number' ? [String(value.value)] : null
    case 'switch':
      return value.kind === 'boolean' ? [String(value.value)] : null
    case 'list': {
      const items = value.kind === 'list' ? value.items : [value]
      const texts = items.flatMap((item) => (item.kind === 'string' && item.value !== '' ? [item.value] : []))
      return texts.length === items.length ? texts : null
    }
    case 'text':
    case 'path':
      return value.kind === 'string' && value.value !== '' ? [value.value] : null
  }
}

const inQuotes = (key: string): string => `as a text in quotes: ${key} = "..."`
const written: Readonly<Record<SettingKind, (key: string) => string>> = {
  text: inQuotes,
  path: inQuotes,
  number: (key) => `as a whole number: ${key} = 1`,
  switch: (key) => `as true or false: ${key} = true`,
  list: (key) => `as a list of texts: ${key} = ["...", "..."]`,
}
