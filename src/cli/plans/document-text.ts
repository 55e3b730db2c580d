// The document of `muster export` and `muster apply` as people keep it: durations, octal modes and sizes instead of numbers, and back.

import { Document, isScalar, Scalar, visit } from 'yaml'
import { readText } from '#cli/kit/arguments.ts'
import type { Cli } from '#cli/kit/cli.ts'
import { contentsOf, sourceOf, withLineOf, wrong, type Key, type Source } from '#cli/kit/document-source.ts'
import { Failure } from '#cli/kit/failure.ts'
import { bytes, milliseconds, mode, type Reader } from '#cli/kit/written-values.ts'
import { formatDuration } from '#wire/core/duration.ts'
import { closestTo } from '#platform/closest-word.ts'
import { documentVersion, largestDocument, type DocumentBody } from '#wire/plans/document-api.ts'
import { documentWords, type Words } from '#wire/plans/document-words.ts'

type Written = { readonly read: Reader; readonly takes: string; readonly show: (value: number) => string | number }

const duration: Written = { read: milliseconds, takes: 'takes a duration such as 30m', show: formatDuration }
const octal: Written = {
  read: mode,
  takes: 'takes octal permissions, such as 0644',
  show: (value) => `0${value.toString(8)}`,
}
const size: Written = {
  read: bytes,
  takes: 'takes bytes, or a size such as 512MiB',
  show: (value) => shownBytes(value),
}

/** How people write the number at a place; null: as it is. */
const writtenAs = (at: Key): Written | null => {
  const key = at.at(-1) ?? ''
  if (key === 'keyMode' || (key === 'mode' && at.at(-3) === 'files')) return octal
  if (key === 'memoryBytes') return size
  return typeof key === 'string' && key.endsWith('Ms') ? duration : null
}

/** Variables of a service have any name, and text in them is theirs. */
const isOpaque = (at: Key): boolean => at.at(-1) === 'environment'

const shownBytes = (value: number): string | number => {
  const unit = (['TiB', 'GiB', 'MiB', 'KiB'] as const).find((_, at) => value % 2 ** (40 - 10 * at) === 0)
  return unit === undefined || value === 0 ? value : `${value / (bytes(`1${unit}`, null, false) as number)}${unit}`
}

// From a file.

const help = 'See what one looks like: muster export, or muster apply --help'

export type ReadDocument = {
  readonly document: DocumentBody
  /** A refusal of the plane, with the line of the file that it is about. */
  withLine(failure: Failure): Failure
}

export const readDocument = async (cli: Cli, file: string): Promise<ReadDocument> => {
  const source = sourceOf(file, await readText(cli, file, largestDocument), help)
  const document = contentsOf(source)
  if (document['apiVersion'] !== documentVersion) throw wrong(source, ['apiVersion'], `takes ${documentVersion}`)
  return {
    // The plane holds it against its schema, and names the field that does not fit.
    document: valueIn(source, [], document) as DocumentBody,
    withLine: (failure) => withLineOf(source, ['document'], withMeant(failure)),
  }
}

/** A refusal of a word that is unknown here too, with the one that was probably meant. */
const withMeant = (failure: Failure): Failure => {
  const meant = meantBy(documentWords, failure.field?.split('.').slice(1) ?? [])
  if (meant === null) return failure
  const { exit, code, message: sentence, next, retryAfterMs, field } = failure
  const detail = [...(failure.detail === null ? [] : [failure.detail]), `did you mean ${meant}?`].join('; ')
  return new Failure({ exit, code, sentence, detail, next, retryAfterMs, field })
}

const meantBy = ({ properties = {}, items }: Words, [word, ...rest]: readonly string[]): string | null => {
  if (word === undefined) return null
  if (items !== undefined) return meantBy(items, rest)
  const known = Object.hasOwn(properties, word) ? properties[word] : undefined
  if (known !== undefined) return meantBy(known, rest)
  return closestTo(word, Object.keys(properties))
}

const valueIn = (source: Source, at: Key, given: unknown): unknown => {
  if (Array.isArray(given)) return given.map((one, index) => valueIn(source, [...at, index], one))
  if (typeof given === 'object' && given !== null)
    return isOpaque(at)
      ? given
      : Object.fromEntries(Object.entries(given).map(([key, part]) => [key, valueIn(source, [...at, key], part)]))
  const written = writtenAs(at)
  if (written === null || given === null) return given
  const node = source.document.getIn(at, true)
  const plain = isScalar(node) && typeof node.source === 'string' && node.type === 'PLAIN' ? node.source : null
  const read = written.read(given, plain, source.isJson)
  if (typeof read !== 'number') throw wrong(source, at, written.takes)
  return read
}

// To a file.

/** Two exports of the same domain are the same text. */
export const documentYaml = (document: DocumentBody): string => {
  const yaml = new Document(shown([], document))
  visit(yaml, {
    Scalar(_, node) {
      if (typeof node.value === 'string' && isFragile(node.value)) node.type = Scalar.QUOTE_DOUBLE
    },
  })
  const text = yaml.toString({ lineWidth: 0, doubleQuotedAsJSON: true, blockQuote: 'literal' })
  // Left in double quotes only, where YAML has escapes for them.
  return text.replace(allUnsafe, escaped)
}

/** Not to be written as lines of their own: what a terminal acts on, and spaces that would be taken for the indentation. */
const isFragile = (text: string): boolean => unsafe.test(text) || /^[ \t]*\n|\n[ \t]+(\n|$)|^[ \t].*\n/.test(text)

const shown = (at: Key, value: unknown): unknown => {
  if (Array.isArray(value)) return value.map((one, index) => shown([...at, index], one))
  if (typeof value === 'object' && value !== null)
    return isOpaque(at)
      ? value
      : Object.fromEntries(Object.entries(value).map(([key, part]) => [key, shown([...at, key], part)]))
  return typeof value === 'number' ? (writtenAs(at)?.show(value) ?? value) : value
}

/** What a terminal would act on (kit/printable.ts). Lines and tabs are part of files. */
const unsafe = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/u
const allUnsafe = new RegExp(unsafe, 'gu')

const escaped = (character: string): string => {
  const code = character.codePointAt(0) ?? 0
  return code > 0xffff ? `\\U${code.toString(16).padStart(8, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`
}
