// What V8 compiles of each part while it is loaded, so that a command need not do it again: half of its start. V8 orders what it keeps
// by hashes, whose seed is random in every process. Under a fixed seed the same parts make the same bytes; the seed is not in them.

import { spawnSync } from 'node:child_process'
import { EventEmitter } from 'node:events'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { Script } from 'node:vm'
import listedNodes from './listed-nodes.json' with { type: 'json' }
import type { ChunkModule, Part, Parts } from './build-parts.ts'

/**
 * What `muster` runs with, in `./muster` as well: what V8 has compiled is good under the same flags only. V8 begins with so little room for
 * new objects that it collects twice while a command starts; it would grow to this anyway.
 */
export const v8Flags = ['--min-semi-space-size=4']

/** In a folder that holds the parts: writes NAME.cache for each. For the architecture of this machine. */
export const compileParts = (folder: string, partOf: Parts['partOf']): void => {
  fs.writeFileSync(path.join(folder, 'part-of.json'), JSON.stringify(partOf))
  run(['--hash-seed=1', '--predictable', '--no-flush-bytecode'], folder, 'compile')
  run(v8Flags, folder, 'finish')
  fs.rmSync(path.join(folder, 'part-of.json'))
}

const run = (flags: readonly string[], folder: string, step: 'compile' | 'finish'): void => {
  // Without the flags of this process: what V8 keeps is good under the same flags only.
  const env = { PATH: process.env['PATH'] }
  const args = [...flags, import.meta.filename, folder, step]
  const { status, stderr } = spawnSync(process.execPath, args, { env, stdio: ['ignore', 'ignore', 'pipe'] })
  if (status !== 0) throw new Error(`the parts could not be compiled:\n${stderr.toString()}`)
}

const partsIn = (folder: string): string[] => fs.readdirSync(folder).filter((name) => name.endsWith('.js'))

const textOf = (folder: string, name: string): string => fs.readFileSync(path.join(folder, name), 'latin1')

/** The first chunk is the command itself. */
const first = 'muster.js'

const compile = async (folder: string): Promise<void> => {
  const partOf = JSON.parse(fs.readFileSync(path.join(folder, 'part-of.json'), 'utf8')) as Parts['partOf']
  const loaded = new Map<string, ChunkModule>()
  const parts = new Map(
    partsIn(folder).map((filename) => {
      const script = new Script(textOf(folder, filename), { filename })
      return [filename, { script, chunks: script.runInThisContext() as Part }] as const
    }),
  )
  let isReady = false
  const load = (name: string): unknown => {
    if (name === 'node:http') return isReady ? answeringPlane : process.getBuiltinModule(name)
    if (!name.startsWith('./')) return process.getBuiltinModule(name)
    const known = loaded.get(name)
    if (known !== undefined) return known.exports
    const module: ChunkModule = { exports: {} }
    loaded.set(name, module)
    const chunk = name.slice(2)
    parts.get(partOf[chunk] ?? '')?.chunks[chunk]?.(module.exports, load, module, '', '')
    return module.exports
  }
  for (const chunk of Object.keys(partOf)) if (chunk !== first) load(`./${chunk}`)
  isReady = true
  await runCommands(folder, () => {
    loaded.delete(`./${first}`)
    return (load(`./${first}`) as { readonly ended: Promise<void> }).ended
  })
  for (const [name, { script }] of parts) {
    fs.writeFileSync(path.join(folder, `${name}.cache`), script.createCachedData())
  }
}

const exit = process.exit.bind(process)

const commands = [['version'], ['--help'], ['node', '--help'], ['node', 'list']]

/** A function is compiled when it is called. */
const runCommands = async (folder: string, run: () => Promise<void>): Promise<void> => {
  const data = path.join(folder, 'data')
  fs.mkdirSync(data)
  fs.writeFileSync(path.join(data, 'admin.key'), `muster_key_${'k'.repeat(43)}`, { mode: 0o600 })
  process.env['MUSTER_DATA'] = data
  // A command ends its process, and others follow here.
  process.exit = (() => undefined) as unknown as typeof process.exit
  // How long ago something was is written in other words each day.
  Date.now = () => 1_800_000_000_000
  const [node = '', script = ''] = process.argv
  for (const words of commands) {
    process.argv = [node, script, ...words]
    await run()
  }
  fs.rmSync(data, { recursive: true })
  process.exit = exit
}

/**
 * Stands for node:http: a plane that has answered before it was asked. A connection would make what is compiled depend on when the
 * system hands out its bytes. Where the answer fits no more, the command says so, and less of it is compiled.
 */
const answeringPlane = {
  Agent: class {
    destroy(): void {}
  },
  request: () => {
    const call = new EventEmitter()
    const end = (): void =>
      queueMicrotask(() => {
        const response = Object.assign(new EventEmitter(), { statusCode: 200, headers: {} })
        call.emit('response', response)
        response.emit('data', Buffer.from(JSON.stringify(listedNodes)))
        response.emit('end')
        call.emit('close')
      })
    return Object.assign(call, { end, destroy: () => call })
  },
}

/** Where V8 writes the hash of the flags that it ran with. The seed is one of them, and processes do not run with it. */
const flagsAt = 12

const finish = (folder: string): void => {
  const flags = new Script('0').createCachedData().subarray(flagsAt, flagsAt + 4)
  for (const name of partsIn(folder)) {
    const cachedData = fs.readFileSync(path.join(folder, `${name}.cache`))
    flags.copy(cachedData, flagsAt)
    const script = new Script(textOf(folder, name), { filename: name, cachedData })
    if (script.cachedDataRejected !== false) throw new Error(`V8 does not take what it has compiled of ${name}`)
    fs.writeFileSync(path.join(folder, `${name}.cache`), cachedData)
  }
}

if (import.meta.main) {
  const [folder = '', step] = process.argv.slice(2)
  if (step === 'compile') await compile(folder)
  else finish(folder)
  process.exit(0)
}
