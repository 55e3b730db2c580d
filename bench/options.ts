// The options of a benchmark. What is wrong with them is one line, behind which scripts/bench.ts says how it is called.

import { parseArgs, type ParseArgsConfig } from 'node:util'

/** As EX_USAGE of sysexits.h. */
const wrongUsage = 64

export function wrongOption(why: string): never {
  console.error(why)
  process.exit(wrongUsage)
}

export const benchOptions = <T extends ParseArgsConfig>(config: T): ReturnType<typeof parseArgs<T>> => {
  try {
    return parseArgs(config)
  } catch (error) {
    return wrongOption(error instanceof Error ? error.message : String(error))
  }
}
