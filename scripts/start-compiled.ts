// What a command of the tests starts with (test-command.ts): a program of the script beside it, with what V8 has compiled of that
// before. The compile cache of Node has what runs while a module is loaded and none of the functions that are called later: to
// compile these again was a fifth of what planes and agents did. The first process of a kind that ends keeps what it has used.

import * as fs from 'node:fs'
import { createRequire } from 'node:module'
import * as path from 'node:path'
import { Script } from 'node:vm'

const name = path.basename(import.meta.filename, '.js')
const [noun, verb] = process.argv.slice(2)
/** Each uses other functions, and to read what is not used takes time as well. */
const kind =
  name !== 'muster' || (noun === 'agent' && verb === 'run') ? 'agent' : noun === 'plane' ? 'plane' : 'command'

const programs = path.join(import.meta.dirname, 'programs.js')
const kept = `${programs}.${kind}`

/** Whole or not at all, since others start meanwhile. One of another user, or on a full disk, keeps nothing. */
const keep = (script: Script): void => {
  const written = `${kept}.${process.pid}`
  try {
    fs.writeFileSync(written, script.createCachedData())
    fs.renameSync(written, kept)
  } catch {
    fs.rmSync(written, { force: true })
  }
}

const cachedData = fs.existsSync(kept) ? fs.readFileSync(kept) : undefined
// In ASCII: neither decoded nor copied, megabytes are there at once.
const text = fs.readFileSync(programs, 'latin1')
const script = new Script(text, { filename: programs, ...(cachedData !== undefined && { cachedData }) })
if (cachedData === undefined) process.once('exit', () => keep(script))

type Programs = { readonly start: Readonly<Record<string, () => Promise<{ readonly ended: Promise<void> }>>> }
type Module = { exports: Programs }
const module: Module = { exports: { start: {} } }
const evaluate = script.runInThisContext() as (
  module: Module,
  require: NodeJS.Require,
  filename: string,
  dirname: string,
) => void
evaluate(module, createRequire(import.meta.url), programs, import.meta.dirname)

// As Node says of a module that awaits for ever: an end without an outcome must not look like a success.
const neverEnded = 13
process.exitCode = neverEnded
void module.exports.start[name]?.()
  .then(({ ended }) => ended)
  .then(() => {
    if (process.exitCode === neverEnded) process.exitCode = 0
  })
