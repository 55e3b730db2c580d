// `npm run check`: types, lint, boundaries, references, dead code, format. One line a step; a failing tool is quoted whole.

import * as path from 'node:path'
import { pathToFileURL } from 'node:url'
import { checkBoundaries } from './boundaries.ts'
import { checkReferences } from './references.ts'
import { root } from './repository.ts'
import { runCommand, type Finished } from './run-command.ts'

const tool = (name: string, ...args: string[]): Promise<Finished> =>
  runCommand(path.join(root, 'node_modules', '.bin', name), args, root)

/** A check of our own, in this process. */
const own = async (check: (root: string) => readonly string[]): Promise<Finished> => {
  const startedMs = performance.now()
  const output = check(root).map((violation) => `${violation}\n`)
  return { code: output.length === 0 ? 0 : 1, output: output.join(''), seconds: (performance.now() - startedMs) / 1000 }
}

type Step = { readonly name: string; run(): Promise<Finished> }

/** Files whose content was right before are not read again: half a minute of a processor for all of them. */
const prettier = ['--cache', '--cache-strategy', 'content', '--check', '--log-level', 'warn', '.']

/** The longest that uses one processor first. */
const steps: readonly Step[] = [
  { name: 'format', run: () => tool('prettier', ...prettier) },
  { name: 'types', run: () => tool('tsc', '-p', '.') },
  { name: 'lint', run: () => tool('oxlint', '--type-aware', '--deny-warnings') },
  { name: 'boundaries', run: () => own(checkBoundaries) },
  { name: 'references', run: () => own(checkReferences) },
  { name: 'dead code', run: () => tool('knip', '--no-progress') },
]

/** True when every step passed. Two run side by side. */
export const check = async (): Promise<boolean> => {
  const left = [...steps]
  let passed = true
  const work = async (): Promise<void> => {
    for (let step = left.shift(); step !== undefined; step = left.shift()) {
      const { code, output, seconds } = await step.run()
      console.log(`${code === 0 ? 'ok    ' : 'FAILED'} ${step.name.padEnd(11)} ${seconds.toFixed(1)} s`)
      if (code === 0) continue
      console.log(output.trimEnd())
      passed = false
    }
  }
  await Promise.all([work(), work()])
  return passed
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) process.exit((await check()) ? 0 : 1)
