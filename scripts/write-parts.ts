// `npm ci` runs this: `muster` as parts in dist/parts, which `./muster` starts instead of the sources while these are not newer. A command
// then starts in a fifth of the time.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { build, type Metafile } from 'esbuild'
import { buildParts, type Parts } from './build-parts.ts'
import { compileParts } from './compile-parts.ts'
import { root } from './repository.ts'

/** Into an empty folder: the parts, what V8 compiles of them where `compiled` says so, and `start.js`. */
export const writeParts = async (folder: string, parts: Parts, compiled: boolean): Promise<void> => {
  for (const [name, text] of parts.texts) fs.writeFileSync(path.join(folder, name), text)
  if (compiled) compileParts(folder, parts.partOf)
  for (const [name, text] of parts.threads) fs.writeFileSync(path.join(folder, name), text)
  fs.writeFileSync(
    path.join(folder, 'start.js'),
    await startScript({ partsAreCompiled: compiled, partOf: parts.partOf }),
  )
}

/** For `./muster`, whose shell looks at files without starting a program: Node itself takes four times as long for it. */
const shellCheck = (sources: readonly string[]): string =>
  [
    `for file in ${sources.join(' ')}; do`,
    '  [ "$start" -nt "$here/$file" ] || { start="$here/bin/muster.ts"; break; }',
    'done',
    '',
  ].join('\n')

/** The same for `dist/parts` of a checkout, whose sources may change. */
export const writeForCheckout = async (
  folder: string,
  parts: Parts,
  { compiled, startedAt }: { readonly compiled: boolean; readonly startedAt: Date },
): Promise<void> => {
  await writeParts(folder, parts, compiled)
  for (const [name, sources] of sourcesByNoun(parts.metafile))
    fs.writeFileSync(path.join(folder, `${name}.sources`), shellCheck(sources))
  fs.writeFileSync(path.join(folder, 'package.json'), '{"type":"commonjs"}\n')
  fs.utimesSync(path.join(folder, 'start.js'), startedAt, startedAt)
}

const startScript = async (values: object): Promise<string> => {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: ['scripts/start-parts.ts'],
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node24',
    define: Object.fromEntries(Object.entries(values).map(([name, value]) => [name, JSON.stringify(value)])),
    logLevel: 'warning',
    write: false,
  })
  return outputFiles[0]?.text ?? ''
}

/**
 * What a command is made of, by its noun where that is the name of the noun's file: `./muster` looks whether it has changed since. To look at
 * all sources took as long as an eighth of Node's own start. `muster`: what is loaded without a noun. `every`: all of it.
 */
export const sourcesByNoun = ({ inputs, outputs }: Metafile): ReadonlyMap<string, readonly string[]> => {
  const first = 'dist/muster.js'
  const entries = ['src/cli/all-nouns.ts', 'src/cli/node-nouns.ts'].flatMap((file) => inputs[file]?.imports ?? [])
  const nouns = new Set(
    Object.keys(outputs).filter((file) =>
      entries.some(({ path: source, kind }) => kind === 'dynamic-import' && source === outputs[file]?.entryPoint),
    ),
  )
  const sourcesFrom = (starts: readonly string[], passes: (file: string) => boolean): string[] => {
    const reached = new Set<string>()
    const waiting = [...starts]
    for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
      const output = outputs[file]
      if (reached.has(file) || output === undefined) continue
      reached.add(file)
      waiting.push(...output.imports.map((imported) => imported.path).filter(passes))
    }
    const inputs = [...reached].flatMap((file) => Object.keys(outputs[file]?.inputs ?? {}))
    return [...new Set(inputs)].filter((file) => /^(bin|src|package\.json)/.test(file)).toSorted()
  }
  const isNoNoun = (file: string): boolean => !nouns.has(file)
  return new Map([
    ['every', sourcesFrom([first], () => true)],
    ['muster', sourcesFrom([first], isNoNoun)],
    ...[...nouns].map((file): [string, string[]] => [
      path.basename(outputs[file]?.entryPoint ?? file, '.ts'),
      sourcesFrom([first, file], isNoNoun),
    ]),
  ])
}

/** Gone and there again in one step: a command may start meanwhile. */
const replaceFolder = (folder: string, by: string): void => {
  fs.rmSync(`${folder}.old`, { recursive: true, force: true })
  if (fs.existsSync(folder)) fs.renameSync(folder, `${folder}.old`)
  fs.renameSync(by, folder)
  fs.rmSync(`${folder}.old`, { recursive: true, force: true })
}

if (import.meta.main) {
  const folder = path.join(root, 'dist/parts')
  fs.mkdirSync(path.dirname(folder), { recursive: true })
  const made = fs.mkdtempSync(`${folder}.`)
  // A source that is changed meanwhile is newer.
  const startedAt = new Date()
  try {
    await writeForCheckout(made, await buildParts(), { compiled: true, startedAt })
    replaceFolder(folder, made)
  } finally {
    fs.rmSync(made, { recursive: true, force: true })
  }
}
