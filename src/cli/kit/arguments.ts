// What was given on the command line, checked before anything is sent: the plane would only say that a request does not fit.

import { errno, readShortFile } from '#platform/files.ts'
import type { Cli } from './cli.ts'
import { usageFailure } from './failure.ts'
import { nodeIdShape, tagShape } from '#wire/core/shapes.ts'
import { parseDuration } from '#wire/core/duration.ts'

/** A file a command names, or standard input for `-`. */
export const readText = async (cli: Cli, file: string, limit: number): Promise<string> => {
  const text = file === '-' ? await cli.input.readAll(limit) : readFile(file, limit)
  if (text === null) throw usageFailure(file === '-' ? 'Standard input is too long.' : `There is no file ${file}.`)
  return text
}

const readFile = (file: string, limit: number): string | null => {
  const found = readOrFail(file, limit)
  if (found === 'too-long') throw usageFailure(`${file} is too long.`)
  return found === null ? null : found.text
}

const readOrFail = (file: string, limit: number): ReturnType<typeof readShortFile> => {
  try {
    return readShortFile(file, limit)
  } catch (error) {
    const why = errno(error) ?? 'unknown trouble'
    // What holds a secret is for one user only, and often made by another.
    const next = why === 'EACCES' ? `Run this as a user who may read ${file}, or pass it on standard input: -` : null
    throw usageFailure(`${file} cannot be read: ${why}.`, next)
  }
}

/** Checked before it is sent: the plane would only say that the request does not fit a schema. */
export const nodeName = (text: string): string => {
  if (new RegExp(nodeIdShape).test(text)) return text
  throw usageFailure(
    `${text} is not a name for a node.`,
    'Use lower-case letters, digits, dots, dashes and underscores, a letter or digit first and last, at most 63',
  )
}

/** As `--tag` takes it: `rack=R7` is `rack:r7`. Null: no tag. */
export const tagFrom = (given: string): string | null => {
  const tag = given.toLowerCase().replace(/^([^:=]+)=/, '$1:')
  return new RegExp(tagShape).test(tag) ? tag : null
}

export const tagRule = 'letters, digits, dots, dashes, underscores and colons, at most 63'

export const durationOption = (option: string, text: string): number => {
  const ms = parseDuration(text)
  if (ms === null) throw usageFailure(`${option} ${text} is not a duration.`, 'Write a number and a unit: 30m, 24h, 3d')
  return ms
}
