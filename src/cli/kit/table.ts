// Aligned columns for people. Nothing is cut or wrapped: a long row is a long line.

import { printable } from './printable.ts'
import type { Colour, Paint } from './print.ts'

export type Cell = string | { readonly text: string; readonly colour: Colour }

export const renderTable = (rows: readonly (readonly Cell[])[], paint: Paint): string[] => {
  const texts = rows.map((row) => row.map((cell) => printable(typeof cell === 'string' ? cell : cell.text)))
  const widths: number[] = []
  for (const row of texts) row.forEach((text, at) => (widths[at] = Math.max(widths[at] ?? 0, [...text].length)))
  return texts.map((row, y) =>
    row
      .map((text, x) => {
        const cell = rows[y]?.[x]
        const shown = typeof cell === 'object' ? paint(cell.colour, text) : text
        return shown + ' '.repeat((widths[x] ?? 0) - [...text].length)
      })
      .join('  ')
      .trimEnd(),
  )
}

/** A table whose first row names its columns. */
export const renderHeadedTable = (
  header: readonly string[],
  rows: readonly (readonly Cell[])[],
  paint: Paint,
): string[] => renderTable([header.map((text) => ({ text, colour: 'dim' as const })), ...rows], paint)

/** `name  value` lines; a value of several lines continues under its first. */
export const renderFacts = (
  facts: readonly (readonly [name: string, value: string | readonly string[]])[],
): string[] => {
  const width = Math.max(0, ...facts.map(([name]) => name.length))
  return facts.flatMap(([name, value]) => {
    const lines = typeof value === 'string' ? [value] : value
    return lines.map((line, at) => `${(at === 0 ? name : '').padEnd(width)}  ${printable(line)}`.trimEnd())
  })
}
