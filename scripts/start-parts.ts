// Starts `muster` from its parts (build-parts.ts), in the executable and in a checkout. Each is loaded when it is needed for the first
// time: an agent runs nothing of the plane, and a command nothing of the other commands.

import { readFileSync } from 'node:fs'
import { getRawAsset, isSea } from 'node:sea'
import { pathToFileURL } from 'node:url'
import { Script } from 'node:vm'
import type { ChunkModule, Part, Parts } from './build-parts.ts'

/** Both are set by the build (write-parts.ts). */
declare const partsAreCompiled: boolean
declare const partOf: Parts['partOf']

const read = isSea()
  ? (name: string): Buffer => Buffer.from(getRawAsset(name))
  : (name: string): Buffer => readFileSync(`${__dirname}/${name}`)

const parts = new Map<string, Part>()

const readPart = (filename: string): Part => {
  const known = parts.get(filename)
  if (known !== undefined) return known
  const compiled = partsAreCompiled ? { cachedData: read(`${filename}.cache`) } : {}
  // In ASCII: nothing has to be decoded.
  const part = new Script(read(filename).toString('latin1'), { filename, ...compiled }).runInThisContext() as Part
  parts.set(filename, part)
  return part
}

const loaded = new Map<string, ChunkModule>()
const url = isSea() ? '' : pathToFileURL(__filename).href

const load = (name: string): unknown => {
  if (!name.startsWith('./')) return require(name)
  const known = loaded.get(name)
  if (known !== undefined) return known.exports
  const module: ChunkModule = { exports: {} }
  loaded.set(name, module)
  const chunk = name.slice(2)
  readPart(partOf[chunk] ?? '')[chunk]?.(module.exports, load, module, __dirname, url)
  return module.exports
}

// As Node says of a module that awaits for ever: an end without an outcome must not look like a success.
const neverEnded = 13
process.exitCode = neverEnded
const { ended } = load('./muster.js') as { readonly ended: Promise<void> }
void ended.then(() => {
  if (process.exitCode === neverEnded) process.exitCode = 0
})
