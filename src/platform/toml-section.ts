// Tables of TOML that are read key by key into values: a key that is never read is unknown, and what is wrong is said with its line.
// Also what values of files about a host may be: its users, units, paths and words for programs. All functions here are pure.

import { parseToml, type TomlTable, type TomlValue } from './toml.ts'

/** Caught by `readToml`. */
class WrongEntry extends Error {}

/** `why`: with line and key. */
export const readToml = <T>(
  text: string,
  read: (root: Section) => T,
): { readonly kind: 'read'; readonly value: T } | { readonly kind: 'invalid'; readonly why: string } => {
  const root = parseToml(text)
  if (root.kind === 'invalid') return { kind: 'invalid', why: `line ${root.line}: ${root.why}` }
  try {
    return { kind: 'read', value: read(new Section(root, '')) }
  } catch (error) {
    if (error instanceof WrongEntry) return { kind: 'invalid', why: error.message }
    throw error
  }
}

/** What one value may be: the value, or null. `takes`: in words, for the one who wrote something else. */
export type Shape<T> = { readonly takes: string; readonly of: (value: TomlValue) => T | null }

export const stringOf = (takes: string, shape: RegExp, longest = 255): Shape<string> => ({
  takes,
  of: (value) =>
    value.kind === 'string' && value.value.length <= longest && shape.test(value.value) ? value.value : null,
})

export const userName = stringOf(
  'the name of a user or a group, or its number',
  /^([a-z_][a-z0-9_.-]*\$?|\d{1,10})$/i,
  32,
)
export const unitName = stringOf('the name of a unit that ends in .service', /^[A-Za-z0-9:_.@\\-]+\.service$/)
// oxlint-disable-next-line no-control-regex -- a program cannot be given a NUL
export const word = stringOf('strings', /^[^\x00]*$/, 4096)

const isPlainPath = (path: string): boolean =>
  /^(\/[A-Za-z0-9._@+-]+)+$/.test(path) && path.split('/').every((part) => part !== '.' && part !== '..')

const plainPath = (takes: string): Shape<string> => ({
  takes,
  of: (value) =>
    value.kind === 'string' && value.value.length <= 255 && isPlainPath(value.value) ? value.value : null,
})

export const absolutePath = plainPath('a full path without . and ..')
export const directory = plainPath('the full path of a directory, without . and .. and without a slash at its end')

/** Exactly these; `any`: those that are asked for. */
export const wordsOrAny: Shape<readonly string[] | 'any'> = {
  takes: 'a list of strings, or "any"',
  of: (value) => {
    if (value.kind === 'string') return value.value === 'any' ? 'any' : null
    const words = value.kind === 'list' ? value.items.map(word.of) : [null]
    return words.every((each) => each !== null) ? words : null
  },
}

export const oneWordOf = <const T extends readonly string[]>(words: T): Shape<T[number]> => ({
  takes: words.join(', '),
  of: (value) => words.find((one) => value.kind === 'string' && value.value === one) ?? null,
})

export const yesOrNo: Shape<boolean> = {
  takes: 'true or false',
  of: (value) => (value.kind === 'boolean' ? value.value : null),
}

export const wholeBetween = (least: number, most: number): Shape<number> => ({
  takes: `a whole number between ${least} and ${most}`,
  of: (value) => (value.kind === 'number' && value.value >= least && value.value <= most ? value.value : null),
})

/** A table of which every key is asked for once; what is left over at its end is unknown. */
export class Section {
  readonly #table: TomlTable
  readonly #name: string
  readonly #known = new Set<string>()

  constructor(table: TomlTable, name: string) {
    this.#table = table
    this.#name = name
  }

  required<T>(key: string, shape: Shape<T>): T {
    return this.optional(key, shape) ?? this.wrong(key, `is missing; it takes ${shape.takes}`)
  }

  optional<T>(key: string, shape: Shape<T>): T | null {
    const value = this.#take(key)
    if (value === null) return null
    return shape.of(value) ?? this.wrong(key, `takes ${shape.takes}`)
  }

  list<T>(key: string, shape: Shape<T>): readonly T[] | null {
    const value = this.#take(key)
    if (value === null) return null
    if (value.kind !== 'list') return this.wrong(key, `takes a list: ${shape.takes}`)
    return value.items.map((item) => shape.of(item) ?? this.wrong(key, `takes a list: ${shape.takes}`))
  }

  section(key: string): Section | null {
    const value = this.#take(key)
    if (value === null) return null
    return value.kind === 'table' ? new Section(value, this.#path(key)) : this.wrong(key, `is a table: [${key}]`)
  }

  /** `[[KEY]]` */
  sections(key: string): readonly Section[] {
    const value = this.#take(key)
    if (value === null) return []
    const items = value.kind === 'list' ? value.items : []
    if (value.kind !== 'list') this.wrong(key, `is a list of tables: [[${key}]]`)
    return items.map((item, at) =>
      item.kind === 'table'
        ? new Section(item, this.#path(`${key}[${at + 1}]`))
        : this.wrong(key, `is a list of tables: [[${key}]]`),
    )
  }

  /** `[KEY.NAME]` */
  named<T>(key: string, names: RegExp, read: (section: Section) => T): ReadonlyMap<string, T> {
    const value = this.#take(key)
    if (value === null) return new Map()
    if (value.kind !== 'table') return this.wrong(key, `takes tables: [${key}.NAME]`)
    const found = new Map<string, T>()
    for (const [name, entry] of value.entries) {
      if (entry.kind !== 'table') this.wrong(key, `takes tables: [${key}.NAME]`)
      else if (!names.test(name))
        throw new WrongEntry(`line ${entry.line}, ${this.#path(key)}: ${name} is not a name it takes`)
      else found.set(name, read(new Section(entry, this.#path(`${key}.${name}`))))
    }
    return found
  }

  /** After the last key was asked for. */
  end(): void {
    for (const key of this.#table.entries.keys()) {
      if (!this.#known.has(key)) this.wrong(key, `is unknown here; known are ${[...this.#known].join(', ')}`)
    }
  }

  wrong(key: string, why: string): never {
    const line = this.#table.entries.get(key)?.line ?? this.#table.line
    const place = this.#path(key)
    throw new WrongEntry(`line ${line}${place === '' ? '' : `, ${place}`}: ${why}`)
  }

  #take(key: string): TomlValue | null {
    this.#known.add(key)
    return this.#table.entries.get(key) ?? null
  }

  #path(key: string): string {
    return [this.#name, key].filter((part) => part !== '').join('.')
  }
}
