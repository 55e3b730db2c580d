// Peers that Debian does not have: built from their source by Go, once, and kept in a cache outside the clone.

import { createHash } from 'node:crypto'
import { spawn } from 'node:child_process'
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'

type Recipe = {
  /** Names the binary in the cache: another version is another binary. */
  readonly version: string
  /** What the build takes on two idle cores, for the one who waits. */
  readonly seconds: number
  readonly folder: string
  /** Of `go`; `out` is the binary to write. */
  readonly command: (out: string) => readonly string[]
}

const small = ['-trimpath', '-ldflags', '-s -w']

const recipes = {
  'step-ca': {
    version: '0.30.2',
    seconds: 75,
    folder: os.tmpdir(),
    command: () => ['install', ...small, 'github.com/smallstep/certificates/cmd/step-ca@v0.30.2'],
  },
  /** Vault's own core, without its CLI and without the SDKs of clouds (vault/main.go). */
  vault: {
    version: '1.21.1',
    seconds: 150,
    folder: path.join(import.meta.dirname, 'vault'),
    command: (out) => ['build', ...small, '-o', out, '.'],
  },
} as const satisfies Record<string, Recipe>

export type BuiltPeer = keyof typeof recipes

export const isBuilt = (name: string): name is BuiltPeer => Object.hasOwn(recipes, name)

const fileOf = (name: BuiltPeer): string => `${name}-${recipes[name].version}`

/** The path of its binary. The first call on a machine takes minutes and says so. */
export const builtPeer = (name: BuiltPeer): Promise<string> => cached(fileOf(name), recipes[name], name)

/** Where its binary is, or will be. */
export const placeOfBuilt = (name: BuiltPeer): string => path.join(cache(), fileOf(name))

/** A program of our own in Go, by what is in its folder now. */
export const builtHere = (folder: string): Promise<string> => {
  const hash = createHash('sha256')
  for (const file of fs.readdirSync(folder).toSorted())
    hash.update(file).update(fs.readFileSync(path.join(folder, file)))
  const version = hash.digest('hex').slice(0, 16)
  const name = path.basename(folder)
  const command = (out: string): readonly string[] => ['build', ...small, '-o', out, '.']
  return cached(`${name}-${version}`, { version, seconds: 10, folder, command }, name)
}

const cache = (): string =>
  path.join(process.env['XDG_CACHE_HOME'] ?? path.join(os.homedir(), '.cache'), 'muster-peers')

const cached = async (
  file: string,
  { version, seconds, folder, command }: Recipe,
  program: string,
): Promise<string> => {
  const binary = path.join(cache(), file)
  if (fs.existsSync(binary)) return binary
  fs.mkdirSync(cache(), { recursive: true })
  console.log(`building ${program} ${version} (about ${seconds} s, once) ...`)
  const scratch = fs.mkdtempSync(path.join(cache(), 'building-'))
  try {
    await go(folder, command(path.join(scratch, program)), scratch)
    // In one step: a build that is cut short leaves nothing that looks like a binary.
    fs.renameSync(path.join(scratch, program), binary)
  } finally {
    fs.rmSync(scratch, { recursive: true, force: true })
  }
  return binary
}

const go = (cwd: string, args: readonly string[], bin: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const env = { ...process.env, CGO_ENABLED: '0', GOBIN: bin }
    const build = spawn('go', args, { cwd, env, stdio: ['ignore', 'inherit', 'inherit'] })
    build.on('error', () => reject(new Error('this needs Go 1.26 or newer on the PATH')))
    build.on('exit', (code) => (code === 0 ? resolve() : reject(new Error(`go ${args[0]} ended with ${code}`))))
  })
