// `npm ci` runs this: `muster` as parts in dist/parts, which `./muster` starts instead of the sources while these are not newer. A command
// then starts in a fifth of the time.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { build } from 'esbuild'
import { buildParts, type Parts } from './build-parts.ts'
import { compileParts } from './compile-parts.ts'
import { root } from './repository.ts'

/** Into an empty folder: the parts, what V8 compiles of them where `compiled` says so, and `start.js`. */
export const writeParts = async (folder: string, parts: Parts, compiled: boolean): Promise<void> => {
  for (const [name, text] of parts.texts) fs.writeFileSync(path.join(folder, name), text)
  if (compiled) compileParts(folder, parts.partOf)
  fs.writeFileSync(path.join(folder, 'tls-thread.js'), parts.thread)
  fs.writeFileSync(
    path.join(folder, 'start.js'),
    await startScript({ partsAreCompiled: compiled, partOf: parts.partOf }),
  )
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
    await writeParts(made, await buildParts(), true)
    fs.writeFileSync(path.join(made, 'package.json'), '{"type":"commonjs"}\n')
    fs.utimesSync(path.join(made, 'start.js'), startedAt, startedAt)
    replaceFolder(folder, made)
  } finally {
    fs.rmSync(made, { recursive: true, force: true })
  }
}
