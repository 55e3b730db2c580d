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
