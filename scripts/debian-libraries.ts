// The libraries that the executable needs, out of the packages of the Debian release of this machine: fetched and verified by apt, unpacked
// and not installed. What a scanner for vulnerabilities asks for, their names and versions, comes along.

import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import type { TarEntry } from './tar-archive.ts'

/** The first is for the name of the release and for the texts of licenses. */
const wanted = ['base-files', 'libc6', 'libgcc-s1', 'libstdc++6', 'libatomic1']

/** Of `base-files` and the libraries, with the licenses that their copyright files refer to. The rest is for compilers, translators and character sets that Node.js does not take from libc. */
const isKept = (name: string): boolean =>
  /^usr\/lib\/os-release$|^etc\/os-release$|^usr\/share\/(doc\/[^/]+\/copyright|common-licenses\/[^/]+)$/.test(name) ||
  (/^(usr\/)?lib(64)?\/(.*\/)?[^/]*\.so(\.[\d.]+)?$/.test(name) && !/\/(gconv|audit)\//.test(name))

export type DebianLibraries = {
  readonly entries: readonly TarEntry[]
  /** `name=version` of each package, sorted. */
  readonly packages: readonly string[]
}

/** `scratch`: an empty folder. */
export const debianLibraries = (arch: 'amd64' | 'arm64', scratch: string): DebianLibraries => {
  const folders = Object.fromEntries(
    ['lists', 'cache', 'debs', 'root'].map((name) => {
      fs.mkdirSync(path.join(scratch, name, 'partial'), { recursive: true })
      return [name, path.join(scratch, name)]
    }),
  ) as Record<'lists' | 'cache' | 'debs' | 'root', string>
  // Lists of its own: those of this machine may be of another architecture, or old.
  const options = [
    `APT::Architecture=${arch}`,
    `APT::Architectures=${arch}`,
    `Dir::State::Lists=${folders.lists}`,
    `Dir::Cache=${folders.cache}`,
    'APT::Sandbox::User=root',
  ].flatMap((option) => ['-o', option])
  const apt = (...args: string[]): void =>
    void execFileSync('apt-get', [...options, '-qq', ...args], { cwd: folders.debs, stdio: 'pipe', maxBuffer: 2 ** 26 })
  try {
    apt('update')
  } catch {
    // A source of other things that does not answer is no reason to stop: what is missing for us is said by the next step.
  }
  apt('download', ...wanted)
  // It holds their license, and its name the version of the compiler.
  const [common] = /gcc-\d+-base/.exec(fieldsOf(path.join(folders.debs, debOf(folders.debs, 'libgcc-s1')))) ?? []
  if (common !== undefined) apt('download', common)
  fs.rmSync(path.join(folders.debs, 'partial'), { recursive: true })
  fs.rmSync(path.join(folders.root, 'partial'), { recursive: true })
  const debs = fs
    .readdirSync(folders.debs)
    .sort()
    .map((name) => path.join(folders.debs, name))
  for (const deb of debs) execFileSync('dpkg-deb', ['--extract', deb, folders.root], { stdio: 'pipe' })
  const controls = debs.map((deb) => {
    const text = fieldsOf(deb)
    const field = (name: string): string => new RegExp(`^${name}: (.*)$`, 'm').exec(text)?.[1] ?? ''
    return { name: field('Package'), version: field('Version'), text }
  })
  const described: TarEntry[] = controls.map(({ name, text }) => ({
    kind: 'file',
    name: `var/lib/dpkg/status.d/${name}`,
    mode: 0o644,
    content: Buffer.from(text),
  }))
  return {
    entries: [...keptBelow(folders.root), ...described],
    packages: controls.map(({ name, version }) => `${name}=${version}`),
  }
}

const fieldsOf = (deb: string): string => execFileSync('dpkg-deb', ['--field', deb], { encoding: 'utf8' })

const debOf = (folder: string, name: string): string =>
  fs.readdirSync(folder).find((one) => one.startsWith(`${name}_`)) ?? ''

/** With links to the loader and the libraries where a release has all of them below /usr. */
const keptBelow = (root: string): TarEntry[] => {
  const entries: TarEntry[] = []
  const walk = (folder: string): void => {
    for (const name of fs.readdirSync(path.join(root, folder)).sort()) {
      const place = path.posix.join(folder, name)
      const status = fs.lstatSync(path.join(root, place))
      if (status.isDirectory()) walk(place)
      else if (!isKept(place)) continue
      else if (status.isSymbolicLink()) {
        entries.push({ kind: 'link', name: place, mode: 0o777, to: fs.readlinkSync(path.join(root, place)) })
      } else {
        const content = fs.readFileSync(path.join(root, place))
        entries.push({ kind: 'file', name: place, mode: status.mode & 0o777, content })
      }
    }
  }
  walk('')
  const isThere = (folder: string): boolean => entries.some(({ name }) => name.startsWith(`${folder}/`))
  const merged = ['lib', 'lib64'].filter((name) => !isThere(name) && isThere(`usr/${name}`))
  return [...entries, ...merged.map((name): TarEntry => ({ kind: 'link', name, mode: 0o777, to: `usr/${name}` }))]
}
