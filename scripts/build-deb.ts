// `npm run build:deb [-- --arch x64|arm64] [--out FOLDER]`: Debian packages of the executable, the agent and the plane. The same sources
// make the same bytes.

import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import { newestSchema, releaseOfSchema } from '../src/plane/store/postgres/schema-since.ts'
import { buildExecutable } from './build.ts'
import { debianPackages, layOutPackage, packagingFolder, type DebianPackage } from './debian-tree.ts'
import { root } from './repository.ts'
import { thirdPartyLicenses } from './third-party-licenses.ts'

export const architectures = { x64: 'amd64', arm64: 'arm64' } as const
export type Arch = keyof typeof architectures

export type DebOptions = {
  readonly arch: Arch
  /** What becomes /usr/bin/muster. */
  readonly executable: string
  readonly out: string
  /** Of xz: a lower one is faster, and makes larger files. */
  readonly level?: number
}

export type BuiltDeb = {
  readonly name: DebianPackage
  readonly file: string
  readonly sha256: string
  readonly bytes: number
}

export const packageVersion = (): string =>
  (JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8')) as { version: string }).version

/** When the newest entry of the changelog was written, in seconds: the time of every file in the packages. */
export const changelogEpoch = (): number => {
  const text = fs.readFileSync(path.join(packagingFolder, 'changelog'), 'utf8')
  const written = / -- .*> {2}(.+)$/m.exec(text)?.[1] ?? ''
  return Date.parse(written) / 1000
}

export const buildDebs = (options: DebOptions): readonly BuiltDeb[] => {
  const { arch, executable, out, level = 6 } = options
  const version = packageVersion()
  const epoch = Number(process.env['SOURCE_DATE_EPOCH'] ?? changelogEpoch())
  const built = {
    muster: executable,
    'third-party-licenses.gz': gzipSync(thirdPartyLicenses(), { level: 9 }),
    'NEWS.md.gz': gzipSync(fs.readFileSync(path.join(root, 'CHANGELOG.md')), { level: 9 }),
  }
  const words = { VERSION: version, ARCH: architectures[arch], OLDEST_READER: releaseOfSchema[newestSchema] }
  fs.mkdirSync(out, { recursive: true })
  const staging = fs.mkdtempSync(path.join(os.tmpdir(), 'muster-deb-'))
  try {
    return debianPackages.map((name) => {
      const folder = path.join(staging, name)
      fs.mkdirSync(folder)
      layOutPackage(name, folder, { words, built, epoch })
      const file = path.join(out, `${name}_${version}_${name === 'muster' ? architectures[arch] : 'all'}.deb`)
      // One thread: how xz divides its work shows in the bytes.
      const how = ['--root-owner-group', '-Zxz', `-z${level}`, '--threads-max=1', '--build', folder, file]
      execFileSync('dpkg-deb', how, { env: { ...process.env, SOURCE_DATE_EPOCH: String(epoch) }, stdio: 'pipe' })
      const content = fs.readFileSync(file)
      return { name, file, sha256: createHash('sha256').update(content).digest('hex'), bytes: content.length }
    })
  } finally {
    fs.rmSync(staging, { recursive: true, force: true })
  }
}

/** Of this machine, unless another is named. */
export const archOf = (given: string | undefined): Arch => {
  const wanted = given ?? process.arch
  if (wanted === 'x64' || wanted === 'arm64') return wanted
  throw new Error(`--arch takes x64 or arm64, not ${wanted}`)
}

if (import.meta.main) {
  try {
    const { values } = parseArgs({ options: { arch: { type: 'string' }, out: { type: 'string' } } })
    const arch = archOf(values.arch)
    const out = path.resolve(values.out ?? path.join(root, 'dist'))
    const executable = await buildExecutable(arch, out)
    for (const { file, bytes, sha256 } of buildDebs({ arch, executable: executable.file, out })) {
      console.log(`${path.relative(process.cwd(), file)}  ${Math.ceil(bytes / 1024)} KiB\nsha256:${sha256}`)
    }
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error))
    process.exitCode = 1
  }
}
