// How a command answers: a table for people, or JSON or YAML for programs, on standard output; remarks on standard error.

import type { Cli, GlobalOptions } from './cli.ts'
import { printable, printableJson } from './printable.ts'
import { yamlLines } from './yaml-lines.ts'

export type Print = {
  /** For a program: JSON or YAML. */
  readonly structured: boolean
  /** The answer: `body` as it is for `-o json` and `-o yaml`, else the lines `render` makes of it. */
  answer(body: unknown, render: (paint: Paint) => readonly string[]): void
  /** One line of an answer that does not fit in memory; `body` on one line for `-o json`, as a document for `-o yaml`. */
  item(body: unknown, render: (paint: Paint) => readonly string[]): void
  /** An answer in a format of its own (list.ts). */
  lines(lines: readonly string[]): void
  /** A remark for the person at the terminal. */
  note(text: string): void
}

export const printer = (cli: Cli, options: Pick<GlobalOptions, 'output'>): Print => {
  const { output } = options
  const structured = output === 'json' || output === 'yaml'
  const paint = structured ? plain : paintFor(cli.out, cli.env)
  const write = (lines: readonly string[]) => cli.out.write(lines.map((line) => line + '\n').join(''))
  return {
    structured,
    answer: (body, render) => {
      if (output === 'yaml') return write(yamlLines(body))
      write(output === 'json' ? [printableJson(body, 2)] : render(paint))
    },
    item: (body, render) => {
      if (output === 'yaml') return write(['---', ...yamlLines(body)])
      write(output === 'json' ? [printableJson(body, 0)] : render(paint))
    },
    lines: (lines) => write(lines.map(printable)),
    note: (text) => cli.err.write(cli.hints.asCalled(printable(text)) + '\n'),
  }
}

// Colour only where a person looks: a terminal, without NO_COLOR.

const codes = { green: 32, yellow: 33, red: 31, dim: 2 } as const

export type Colour = keyof typeof codes | 'plain'
export type Paint = (colour: Colour, text: string) => string

export const plain: Paint = (_colour, text) => text

const ansi: Paint = (colour, text) => (colour === 'plain' ? text : `\x1b[${codes[colour]}m${text}\x1b[0m`)

export const paintFor = (
  output: { readonly isTerminal: boolean },
  env: Readonly<Record<string, string | undefined>>,
): Paint => (output.isTerminal && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb' ? ansi : plain)
