import { errno, readFileIfAny } from '#platform/files.ts'
import type { Cli } from './cli.ts'
import { usageFailure } from './failure.ts'

/** A file a command names, or standard input for `-`. */
export const readText = async (cli: Cli, file: string, limit: number): Promise<string> => {
  const text = file === '-' ? await cli.input.readAll(limit) : readFile(file)
  if (text === null) throw usageFailure(file === '-' ? 'Standard input is too long.' : `There is no file ${file}.`)
  if (text.length > limit) throw usageFailure(`${file} is too long.`)
  return text
}

const readFile = (file: string): string | null => {
  try {
    return readFileIfAny(file)
  } catch (error) {
    throw usageFailure(`${file} cannot be read: ${errno(error) ?? 'unknown trouble'}.`)
  }
}
