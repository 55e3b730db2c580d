// `npm run check`: types, lint, dead code, boundaries, format. One line a step; a failing tool is quoted whole.

import * as path from 'node:path'
import { pathToFileURL } from 'node:url'
import { checkBoundaries } from './boundaries.ts'
import { root } from './repository.ts'
import { runCommand, type Finished } from './run-command.ts'

const tool = (name: string, ...args: string[]): Promise<Finished> =>
  runCommand(path.join(root, 'node_modules', '.bin', name), args, root)

const boundaries = async (): Promise<Finished> => {
  const startedMs = performance.now()
  const output = checkBoundaries(root).map((violation) => `${violation}\n`)
  return { code: output.length === 0 ? 0 : 1, output: output.join(''), seconds: (performance.now() - startedMs) / 1000 }
}

const steps: readonly { name: string; run: () => Promise<Finished> }[] = [
  { name: 'types', run: () => tool('tsc', '-p', '.') },
  { name: 'lint', run: () => tool('oxlint', '--type-aware', '--deny-warnings') },
  { name: 'boundaries', run: boundaries },
  { name: 'dead code', run: () => tool('knip', '--no-progress') },
  { name: 'format', run: () => tool('prettier', '--check', '--log-level', 'warn', '.') },
]

/** True when every step passed. */
export const check = async (): Promise<boolean> => {
  let passed = true
  for (const step of steps) {
    const { code, output, seconds } = await step.run()
    console.log(`${code === 0 ? 'ok    ' : 'FAILED'} ${step.name.padEnd(11)} ${seconds.toFixed(1)} s`)
    if (code !== 0) {
      console.log(output.trimEnd())
      passed = false
    }
  }
  return passed
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) process.exit((await check()) ? 0 : 1)
