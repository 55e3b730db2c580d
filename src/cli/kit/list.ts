// Lists. A noun declares its columns once; every format, `--sort` and `--columns` follow from that.

import type { Cli, GlobalOptions } from './cli.ts'
import { usageFailure } from './failure.ts'
import { printer } from './print.ts'
import { printable } from './printable.ts'
import { renderHeadedTable, renderTable, type Cell } from './table.ts'

export type Column<T> = {
  /** Lower case, with dashes: `created-by`. The header is made of it. */
  readonly name: string
  /** For people; an empty cell is shown as `-`. */
  readonly cell: (item: T) => Cell
  /** What CSV holds and `--sort` compares, where that is not the text of the cell: a time, a number. Null: none. */
  readonly value?: (item: T) => string | number | null
  /** Shown by `-o wide`, or by its name. */
  readonly wide?: true
}

export type Listing<T> = {
  readonly items: readonly T[]
  /** The first names an item: `-o name` prints it. */
  readonly columns: readonly Column<T>[]
  /** For `-o json` and `-o yaml`. */
  readonly body: (items: readonly T[]) => unknown
  /** The columns of this view, where they are not all that are not wide. */
  readonly usual?: readonly string[]
}

/** What `lists` (verb.ts) declares. */
export type ListOptions = GlobalOptions & {
  readonly sort?: string
  readonly columns?: string
  readonly headers?: boolean
}

export const showList = <T>(cli: Cli, options: ListOptions, { columns, ...listing }: Listing<T>): void => {
  const shown = columnsShown(options, columns, listing.usual)
  const items = sorted(listing.items, options.sort, columns)
  const print = printer(cli, options)
  const headers = options.headers === false ? [] : [shown.map(({ name }) => name)]
  switch (options.output) {
    case 'name':
      return print.lines(items.map((item) => textOf(columns[0]?.cell(item) ?? '')))
    case 'csv':
      return print.lines(
        [...headers, ...items.map((item) => shown.map((column) => plainText(column, item)))].map(csvLine),
      )
    default:
      print.answer(listing.body(items), (paint) => {
        if (items.length === 0) return []
        const rows = items.map((item) => shown.map((column) => dashed(column.cell(item))))
        return headers.length === 0
          ? renderTable(rows, paint)
          : renderHeadedTable(
              shown.map(({ name }) => name.replaceAll('-', ' ').toUpperCase()),
              rows,
              paint,
            )
      })
  }
}

const columnsShown = <T>(
  { columns: named, output }: ListOptions,
  columns: readonly Column<T>[],
  usual: readonly string[] | undefined,
): readonly Column<T>[] => {
  if (named !== undefined) return named.split(',').map((name) => columnNamed(columns, name.trim()))
  if (output === 'wide') return columns
  return usual === undefined
    ? columns.filter(({ wide }) => wide !== true)
    : usual.map((name) => columnNamed(columns, name))
}

const columnNamed = <T>(columns: readonly Column<T>[], given: string): Column<T> => {
  const name = given.toLowerCase().replaceAll(/[ _]/g, '-')
  const found = columns.find((column) => column.name === name)
  if (found !== undefined) return found
  throw usageFailure(`There is no column ${given}; there are: ${columns.map((column) => column.name).join(', ')}.`)
}

/** Items without a value come last, in either direction. */
const sorted = <T>(items: readonly T[], by: string | undefined, columns: readonly Column<T>[]): readonly T[] => {
  if (by === undefined) return items
  const backwards = by.endsWith(':desc')
  const column = columnNamed(columns, by.replace(/:(?:asc|desc)$/, ''))
  const valued = items.map((item) => ({ item, value: valueOf(column, item) }))
  const compared = (one: string | number, other: string | number): number =>
    (one < other ? -1 : one > other ? 1 : 0) * (backwards ? -1 : 1)
  valued.sort((one, other) => {
    if (one.value === null || other.value === null) return Number(one.value === null) - Number(other.value === null)
    return compared(one.value, other.value)
  })
  return valued.map(({ item }) => item)
}

const valueOf = <T>(column: Column<T>, item: T): string | number | null => {
  const value = column.value === undefined ? textOf(column.cell(item)) : column.value(item)
  return value === '' ? null : value
}

/** A number stays one. */
const plainText = <T>(column: Column<T>, item: T): string => {
  const value = valueOf(column, item)
  return typeof value === 'string' ? noFormula(value) : String(value ?? '')
}

/**
 * Spreadsheets take a text that begins so for a formula, and it may come from a node. With an apostrophe in front it is a text to all
 * of them.
 */
const noFormula = (text: string): string =>
  /^[=+\-@\t\r]/.test(text) && !/^[+-]?[0-9]+(\.[0-9]+)?$/.test(text) ? `'${text}` : text

const textOf = (cell: Cell): string => (typeof cell === 'string' ? cell : cell.text)

const dashed = (cell: Cell): Cell => (textOf(cell) === '' ? '-' : cell)

/** RFC 4180. */
const csvLine = (cells: readonly string[]): string =>
  cells
    .map(printable)
    .map((cell) => (/[",]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell))
    .join(',')
