// The part of TOML that configuration files are written in: tables, lists of tables, strings, whole numbers, booleans and lists.
// Anything else, and anything twice, is an error with its line: a file that bounds what root does is not guessed at. All functions here are pure.

export type TomlValue =
  | { readonly kind: 'string'; readonly line: number; readonly value: string }
  | { readonly kind: 'number'; readonly line: number; readonly value: number }
  | { readonly kind: 'boolean'; readonly line: number; readonly value: boolean }
  | { readonly kind: 'list'; readonly line: number; readonly items: readonly TomlValue[] }
  | TomlTable

export type TomlTable = { readonly kind: 'table'; readonly line: number; readonly entries: Map<string, TomlValue> }

export type TomlFault = { readonly kind: 'invalid'; readonly line: number; readonly why: string }

/** Thrown and caught within this file. */
class Unreadable extends Error {
  readonly line: number

  constructor(line: number, why: string) {
    super(why)
    this.line = line
  }
}

export const parseToml = (text: string): TomlTable | TomlFault => {
  try {
    return new Reader(text).document()
  } catch (error) {
    if (error instanceof Unreadable) return { kind: 'invalid', line: error.line, why: error.message }
    throw error
  }
}

const bareKey = /[A-Za-z0-9_-]+/y
const digits = /[+-]?(?:0o[0-7]+|0x[0-9a-fA-F]+|0|[1-9][0-9]*)(?![0-9A-Za-z._:+-])/y
const escapes: Readonly<Record<string, string>> = { '"': '"', '\\': '\\', n: '\n', t: '\t' }

class Reader {
  readonly #text: string
  #at = 0
  #line = 1
  readonly #root = newTable(1)
  /** By their headers: none may be opened twice. */
  readonly #opened = new Set<TomlTable>()
  /** The lists that `[[NAME]]` made: `NAME = []` makes one that is not added to. */
  readonly #listsOfTables = new Set<TomlValue>()

  constructor(text: string) {
    this.#text = text.replaceAll('\r\n', '\n')
  }

  document(): TomlTable {
    let table = this.#root
    for (;;) {
      this.#skipBlank()
      if (this.#at >= this.#text.length) return this.#root
      if (this.#peek() === '[') table = this.#header()
      else this.#entry(table)
      this.#endOfLine()
    }
  }

  #header(): TomlTable {
    const isList = this.#text.startsWith('[[', this.#at)
    this.#at += isList ? 2 : 1
    const names = [this.#key()]
    while (this.#peek() === '.') {
      this.#at += 1
      names.push(this.#key())
    }
    this.#expect(isList ? ']]' : ']')
    const last = names.pop() ?? ''
    const parent = names.reduce((table, name) => this.#below(table, name), this.#root)
    return isList ? this.#addTable(parent, last) : this.#openTable(parent, last)
  }

  #openTable(parent: TomlTable, name: string): TomlTable {
    const table = this.#below(parent, name)
    if (this.#opened.has(table)) this.#fail(`[${name}] is there twice`)
    this.#opened.add(table)
    return table
  }

  #addTable(parent: TomlTable, name: string): TomlTable {
    const table = newTable(this.#line)
    const found = parent.entries.get(name)
    if (found !== undefined && !(found.kind === 'list' && this.#listsOfTables.has(found))) {
      this.#fail(`${name} is there already, and is no list of tables`)
    }
    const before = found?.kind === 'list' ? found.items : []
    const list: TomlValue = { kind: 'list', line: this.#line, items: [...before, table] }
    this.#listsOfTables.add(list)
    parent.entries.set(name, list)
    return table
  }

  /** The table of that name in another, made where there is none; of a list of tables the last. */
  #below(parent: TomlTable, name: string): TomlTable {
    const found = parent.entries.get(name)
    if (found === undefined) {
      const table = newTable(this.#line)
      parent.entries.set(name, table)
      return table
    }
    const last = found.kind === 'list' && this.#listsOfTables.has(found) ? found.items.at(-1) : found
    return last?.kind === 'table' ? last : this.#fail(`${name} is there already, and is no table`)
  }

  #entry(table: TomlTable): void {
    const name = this.#key()
    if (this.#peek() === '.') this.#fail('a dotted key; write a table in its place: [a.b]')
    this.#expect('=')
    if (table.entries.has(name)) this.#fail(`${name} is there twice`)
    table.entries.set(name, this.#value())
  }

  #key(): string {
    this.#skipSpaces()
    const quote = this.#peek()
    const name = quote === '"' || quote === "'" ? this.#string().value : this.#match(bareKey)
    if (name === null || name === '') return this.#fail('expected a key')
    this.#skipSpaces()
    return name
  }

  #value(): TomlValue {
    this.#skipSpaces()
    const line = this.#line
    const next = this.#peek()
    if (next === '"' || next === "'") return this.#string()
    if (next === '[') return this.#list()
    if (next === '{') return this.#fail('an inline table; write a table of its own: [NAME]')
    for (const word of ['true', 'false'] as const) {
      if (!this.#text.startsWith(word, this.#at)) continue
      this.#at += word.length
      return { kind: 'boolean', line, value: word === 'true' }
    }
    const number = this.#match(digits)
    if (number === null) return this.#fail('expected a string in quotes, a whole number, true, false or a list')
    const value = Number(number)
    return Number.isSafeInteger(value) ? { kind: 'number', line, value } : this.#fail('a number that is too large')
  }

  #list(): TomlValue {
    const line = this.#line
    const items: TomlValue[] = []
    this.#at += 1
    for (;;) {
      this.#skipBlank()
      if (this.#peek() === ']') break
      items.push(this.#value())
      this.#skipBlank()
      if (this.#peek() !== ',') break
      this.#at += 1
    }
    this.#expect(']')
    return { kind: 'list', line, items }
  }

  #string(): TomlValue & { kind: 'string' } {
    const line = this.#line
    const quote = this.#peek()
    if (this.#text.startsWith(quote.repeat(3), this.#at)) this.#fail('a string over several lines')
    let value = ''
    for (this.#at += 1; this.#peek() !== quote; this.#at += 1) {
      const next = this.#peek()
      if (next === '' || next === '\n') this.#fail('a string without its end')
      if (next < ' ' && next !== '\t') this.#fail('a control character in a string')
      value += next === '\\' && quote === '"' ? this.#escape() : next
    }
    this.#at += 1
    return { kind: 'string', line, value }
  }

  #escape(): string {
    this.#at += 1
    return escapes[this.#peek()] ?? this.#fail(`an escape other than \\", \\\\, \\n and \\t`)
  }

  #peek(): string {
    return this.#text.charAt(this.#at)
  }

  #match(shape: RegExp): string | null {
    shape.lastIndex = this.#at
    const [found] = shape.exec(this.#text) ?? []
    if (found === undefined) return null
    this.#at += found.length
    return found
  }

  #expect(wanted: string): void {
    this.#skipSpaces()
    if (!this.#text.startsWith(wanted, this.#at)) this.#fail(`expected ${wanted}`)
    this.#at += wanted.length
  }

  #skipSpaces(): void {
    while (this.#peek() === ' ' || this.#peek() === '\t') this.#at += 1
  }

  /** Also line ends and comments. */
  #skipBlank(): void {
    for (;;) {
      this.#skipSpaces()
      this.#skipComment()
      if (this.#peek() !== '\n') return
      this.#at += 1
      this.#line += 1
    }
  }

  #skipComment(): void {
    if (this.#peek() !== '#') return
    const end = this.#text.indexOf('\n', this.#at)
    this.#at = end === -1 ? this.#text.length : end
  }

  #endOfLine(): void {
    this.#skipSpaces()
    this.#skipComment()
    if (this.#at < this.#text.length && this.#peek() !== '\n')
      this.#fail('something after the end of what was expected')
  }

  #fail(why: string): never {
    throw new Unreadable(this.#line, why)
  }
}

const newTable = (line: number): TomlTable => ({ kind: 'table', line, entries: new Map() })
