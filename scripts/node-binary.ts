// The Node that an executable is made from: the release that package.json pins, for the architecture that is wanted. npm installs it
// for the machine it runs on; for another one it is packed by npm, compared with the lock file, and kept in a cache outside the clone.

import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { root } from './repository.ts'
import { runCommand } from './run-command.ts'

export const architectures = ['x64', 'arm64'] as const
export type Architecture = (typeof architectures)[number]

export type NodeBinary = {
  readonly file: string
  /** As npm names it. */
  readonly package: string
  readonly version: string
  /** Of the package, from the lock file: `sha512-…`. */
  readonly integrity: string
}

export const nodeBinary = async (architecture: Architecture): Promise<NodeBinary> => {
  const name = `node-linux-${architecture}`
  const { version, integrity } = locked(`node_modules/${name}`)
  const known = { package: name, version, integrity }
  const installed = path.join(root, 'node_modules', name, 'bin/node')
  if (fs.existsSync(installed)) return { ...known, file: installed }
  // Named by its digest: what another lock file wants is another file.
  const folder = path.join(cache(), `${name}-${version}-${digestOf(integrity).toString('hex').slice(0, 16)}`)
  if (!fs.existsSync(folder)) await pack(known, folder)
  return { ...known, file: path.join(folder, 'bin/node') }
}

const cache = (): string =>
  path.join(process.env['XDG_CACHE_HOME'] ?? path.join(os.homedir(), '.cache'), 'muster-build')

const pack = async (wanted: Omit<NodeBinary, 'file'>, folder: string): Promise<void> => {
  const specification = `${wanted.package}@${wanted.version}`
  console.log(`getting ${specification} (about 57 MB, once) ...`)
  fs.mkdirSync(cache(), { recursive: true })
  const scratch = fs.mkdtempSync(path.join(cache(), 'getting-'))
  try {
    await run('npm', ['pack', specification, '--ignore-scripts', '--silent'], scratch)
    const archive = path.join(scratch, `${wanted.package}-${wanted.version}.tgz`)
    const found = createHash('sha512').update(fs.readFileSync(archive)).digest()
    if (!found.equals(digestOf(wanted.integrity)))
      throw new Error(`${specification} is not the one that package-lock.json names`)
    await run('tar', ['-xzf', archive, 'package/bin/node'], scratch)
    // In one step: what is cut short leaves nothing that looks complete. Another build may have got the same meanwhile.
    try {
      fs.renameSync(path.join(scratch, 'package'), folder)
    } catch (error) {
      if (!fs.existsSync(path.join(folder, 'bin/node'))) throw error
    }
  } finally {
    fs.rmSync(scratch, { recursive: true, force: true })
  }
}

const run = async (command: string, args: readonly string[], folder: string): Promise<void> => {
  const { code, output } = await runCommand(command, args, folder)
  if (code !== 0) throw new Error(`${command} ${args[0]} failed:\n${output}`.trimEnd())
}

type Locked = { readonly version: string; readonly integrity: string }

/** What the lock file says of the package in a folder of node_modules. */
export const locked = (folder: string): Locked => {
  const lock = JSON.parse(fs.readFileSync(path.join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, Partial<Locked>>
  }
  const { version, integrity } = lock.packages[folder] ?? {}
  if (version === undefined || integrity === undefined) throw new Error(`package-lock.json does not name ${folder}`)
  return { version, integrity }
}

export const digestOf = (integrity: string): Buffer => Buffer.from(integrity.replace(/^sha512-/, ''), 'base64')
