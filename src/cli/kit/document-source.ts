// A YAML or JSON text that people keep: what is wrong with it is said with the line and the key.

import { isMap, LineCounter, parseDocument, type Document, type Node as YamlNode } from 'yaml'
import { Failure, usageFailure } from './failure.ts'
import { printable } from './printable.ts'

export type Key = readonly (string | number)[]

export type Source = {
  readonly file: string
  readonly document: Document.Parsed
  readonly isJson: boolean
  /** A command that shows what one looks like. */
  readonly help: string
  lineOf(key: Key): number
}

export const sourceOf = (file: string, text: string, help: string): Source => {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, version: '1.2' })
  const [error] = document.errors
  if (error !== undefined) {
    const { line } = lines.linePos(error.pos[0])
    throw usageFailure(`${file}:${line}: ${printable(error.message)}.`, help)
  }
  return {
    file,
    document,
    help,
    isJson: text.trimStart().startsWith('{'),
    lineOf: (key) => lines.linePos(offsetOf(document, key)).line,
  }
}

/** Of the value, or of the nearest that is there above it. */
const offsetOf = (document: Document.Parsed, key: Key): number => {
  for (let length = key.length; length >= 0; length--) {
    const node = (length === 0 ? document.contents : document.getIn(key.slice(0, length), true)) as
      YamlNode | null | undefined
    if (node?.range) return node.range[0]
  }
  return 0
}

/** What is in it: keys and values. An empty text has none. */
export const contentsOf = (source: Source): Record<string, unknown> => {
  const { contents } = source.document
  if (contents !== null && !isMap(contents)) throw wrong(source, [], 'The document takes keys and values')
  try {
    return (source.document.toJS() ?? {}) as Record<string, unknown>
  } catch (error) {
    // Too many aliases: a text of a few lines would become one of gigabytes.
    throw usageFailure(`${source.file}: ${printable((error as Error).message)}.`, source.help)
  }
}

export const wrong = ({ file, help, lineOf }: Source, key: Key, why: string): Failure =>
  usageFailure(`${file}:${lineOf(key)}: ${wordsOf(key)} ${printable(why)}.`, help)

const wordsOf = (key: Key): string =>
  key.reduce<string>(
    (text, part) => (typeof part === 'number' ? `${text}[${part}]` : text === '' ? part : `${text}.${part}`),
    '',
  )

/** A refusal of the plane, with the line it is about. `parts`: the fields of the request that the document is in. */
export const withLineOf = (source: Source, parts: readonly string[], failure: Failure): Failure => {
  const [part = '', ...rest] = failure.field?.split('.') ?? []
  const key = rest.map((word) => (/^\d+$/.test(word) ? Number(word) : word))
  if (!parts.includes(part) || key.length === 0) return failure
  const { exit, code, message: sentence, next, retryAfterMs, field } = failure
  const where = `${source.file}:${source.lineOf(key)}: ${wordsOf(key)}`
  const detail = failure.detail === null ? where : `${where}: ${failure.detail}`
  return new Failure({ exit, code, sentence, detail, next, retryAfterMs, field })
}
