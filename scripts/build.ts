// `npm run build [-- --arch x64] [--out FOLDER]`: muster as one file for each architecture that needs no Node on its host, with its
// compressed form (which a plane hands out), its SBOM, and digests of all of them. The same sources make the same bytes.

import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { buildParts, packagesOf, type BundledPackage } from './build-parts.ts'
import { sbom } from './build-sbom.ts'
import { v8Flags } from './compile-parts.ts'
import { architectures, nodeBinary, type Architecture, type NodeBinary } from './node-binary.ts'
import { filesBelow, root } from './repository.ts'
import { runCommand } from './run-command.ts'
import { stripElf } from './strip-elf.ts'
import { executableLicenses } from './third-party-licenses.ts'
import { writeParts } from './write-parts.ts'

type BuiltFile = { readonly file: string; readonly sha256: string; readonly bytes: number }

export type BuiltExecutable = BuiltFile & {
  /** What a plane hands out: `/v1/agent/DIGEST` names its digest. */
  readonly compressed: BuiltFile
  readonly sbom: BuiltFile
}

/** `muster-linux-ARCH` with its `.gz` and `.cdx.json`, and SHA256SUMS of all executables in the folder. */
export const buildExecutable = async (architecture: Architecture, outFolder: string): Promise<BuiltExecutable> => {
  fs.mkdirSync(outFolder, { recursive: true })
  const name = `muster-linux-${architecture}`
  const file = path.join(outFolder, name)
  const { content, node, packages } = await linkExecutable(architecture, file)
  const built = digested(file, content)
  const compressed = written(`${file}.gz`, await promisify(gzip)(content))
  const contents = written(`${file}.cdx.json`, sbom({ name, sha256: built.sha256, node, packages }))
  writeSums(outFolder)
  return { ...built, compressed, sbom: contents }
}

type Linked = { readonly content: Buffer; readonly node: NodeBinary; readonly packages: readonly BundledPackage[] }

/** The executable alone. */
export const linkExecutable = async (architecture: Architecture, file: string): Promise<Linked> => {
  const node = await nodeBinary(architecture)
  const parts = await buildParts()
  const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'muster-build-'))
  try {
    const folder = path.join(scratch, 'parts')
    fs.mkdirSync(folder)
    // V8 compiles for the machine it runs on.
    await writeParts(folder, parts, architecture === process.arch)
    const names = fs.readdirSync(folder).filter((name) => name !== 'start.js')
    const assets = Object.fromEntries(names.sort().map((name) => [name, path.join('parts', name)]))
    for (const name of filesBelow(path.join(root, 'packaging/systemd'), root)) assets[name] = path.join(root, name)
    fs.writeFileSync(path.join(scratch, 'licenses'), executableLicenses())
    assets['licenses'] = 'licenses'
    fs.writeFileSync(path.join(scratch, 'node'), stripElf(fs.readFileSync(node.file)), { mode: 0o755 })
    // Relative: Node writes the name of the script into the executable.
    const configuration = { ...settings, main: 'parts/start.js', executable: 'node', output: 'executable', assets }
    fs.writeFileSync(path.join(scratch, 'sea.json'), JSON.stringify(configuration))
    const { code, output } = await runCommand(process.execPath, ['--build-sea', 'sea.json'], scratch)
    if (code !== 0) throw new Error(`node --build-sea failed:\n${output}`.trimEnd())
    const content = fs.readFileSync(path.join(scratch, 'executable'))
    // In one step: one that runs is replaced, not written over.
    fs.copyFileSync(path.join(scratch, 'executable'), `${file}.new`)
    fs.chmodSync(`${file}.new`, 0o755)
    fs.renameSync(`${file}.new`, file)
    return { content, node, packages: packagesOf(Object.keys(parts.metafile.inputs)) }
  } finally {
    fs.rmSync(scratch, { recursive: true, force: true })
  }
}

const settings = {
  disableExperimentalSEAWarning: true,
  // Without the signal that opens Node's debugger on a port, where every user of the machine could give it orders.
  execArgv: ['--disable-warning=ExperimentalWarning', '--disable-sigusr1', ...v8Flags],
  // NODE_OPTIONS is for operators: the size of a plane's heap, for one.
  execArgvExtension: 'env',
}

const writeSums = (folder: string): void => {
  const names = fs.readdirSync(folder).filter((name) => /^muster-linux-\w+(\.gz|\.cdx\.json)?$/.test(name))
  const lines = names.sort().map((name) => {
    const file = path.join(folder, name)
    return `${digested(file, fs.readFileSync(file)).sha256}  ${name}\n`
  })
  fs.writeFileSync(path.join(folder, 'SHA256SUMS'), lines.join(''))
}

const written = (file: string, content: Buffer | string): BuiltFile => {
  fs.writeFileSync(file, content)
  return digested(file, Buffer.from(content))
}

const digested = (file: string, content: Buffer): BuiltFile => ({
  file,
  sha256: createHash('sha256').update(content).digest('hex'),
  bytes: content.length,
})

if (import.meta.main) {
  try {
    const { values } = parseArgs({ options: { arch: { type: 'string', multiple: true }, out: { type: 'string' } } })
    const out = path.resolve(values.out ?? path.join(root, 'dist'))
    const unknown = values.arch?.find((name) => !architectures.some((known) => known === name))
    if (unknown !== undefined) throw new Error(`--arch takes ${architectures.join(' or ')}, not ${unknown}`)
    for (const architecture of architectures.filter((known) => values.arch?.includes(known) ?? true)) {
      const { compressed, ...built } = await buildExecutable(architecture, out)
      for (const { file, sha256, bytes } of [built, compressed]) {
        console.log(`${path.relative(process.cwd(), file)}  ${(bytes / 1e6).toFixed(1)} MB  sha256:${sha256}`)
      }
    }
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error))
    process.exitCode = 1
  }
}
