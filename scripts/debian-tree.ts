// What a Debian package contains, laid out in a folder as `dpkg-deb --build` takes it. The texts of each are in a folder of packaging/debian:
// control, maintainer scripts, overrides for lintian, and `install`, a line for each file.

import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { gzipSync } from 'node:zlib'
import { filesBelow, root } from './repository.ts'

export const packagingFolder = path.join(root, 'packaging/debian')

export const debianPackages = ['muster', 'muster-agent', 'muster-plane'] as const
export type DebianPackage = (typeof debianPackages)[number]

export const maintainerScripts = ['preinst', 'postinst', 'prerm', 'postrm'] as const

/** By their names in `install`, after `built:`. */
export type BuiltFiles = Readonly<Record<string, string | Buffer>>

export type TreeOptions = {
  /** What stands for `@NAME@` in control and maintainer scripts. */
  readonly words: Readonly<Record<string, string>>
  /** A text is the path of a file. */
  readonly built: BuiltFiles
  /** Of every file, in seconds. */
  readonly epoch: number
}

type Installed =
  | { readonly kind: 'file'; readonly source: string; readonly place: string; readonly mode: number }
  | { readonly kind: 'folder'; readonly place: string; readonly mode: number }

/** The lines of `install`: `SOURCE PLACE MODE`, or `folder PLACE MODE`. */
export const installedBy = (name: DebianPackage): readonly Installed[] =>
  fs
    .readFileSync(path.join(packagingFolder, name, 'install'), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [source = '', place = '', mode = ''] = line.split(' ')
      if (!place.startsWith('/') || !/^0[0-7]{3}$/.test(mode)) throw new Error(`${name}/install: ${line}`)
      const common = { place, mode: Number.parseInt(mode, 8) }
      return source === 'folder' ? { kind: 'folder', ...common } : { kind: 'file', source, ...common }
    })

/** Into an empty folder. */
export const layOutPackage = (name: DebianPackage, folder: string, options: TreeOptions): void => {
  const put = (place: string, content: Buffer | string, mode: number): void => {
    const file = path.join(folder, place)
    fs.mkdirSync(path.dirname(file), { recursive: true })
    fs.writeFileSync(file, content)
    fs.chmodSync(file, mode)
  }
  const text = (file: string): string => fs.readFileSync(path.join(packagingFolder, file), 'utf8')

  const folders = new Map<string, number>()
  for (const one of installedBy(name)) {
    if (one.kind === 'folder') folders.set(one.place, one.mode)
    else put(one.place, contentOf(one.source, options.built), one.mode)
  }
  const documents = `/usr/share/doc/${name}`
  put(`${documents}/copyright`, text('copyright'), 0o644)
  put(`${documents}/changelog.gz`, gzipSync(text('changelog'), { level: 9 }), 0o644)
  if (fs.existsSync(path.join(packagingFolder, name, 'lintian-overrides'))) {
    put(`/usr/share/lintian/overrides/${name}`, text(`${name}/lintian-overrides`), 0o644)
  }
  for (const place of folders.keys()) fs.mkdirSync(path.join(folder, place), { recursive: true })

  const files = filesBelow(folder, folder)
  const bytes = files.reduce((sum, file) => sum + fs.statSync(path.join(folder, file)).size, 0)
  const words = { ...options.words, SIZE: String(Math.ceil(bytes / 1024) + files.length) }
  put('DEBIAN/control', filledIn(text(`${name}/control`), words), 0o644)
  put('DEBIAN/md5sums', files.map((file) => `${md5Of(path.join(folder, file))}  ${file}\n`).join(''), 0o644)
  // An administrator's changes to these survive an upgrade.
  const kept = files.filter((file) => file.startsWith('etc/')).map((file) => `/${file}\n`)
  if (kept.length > 0) put('DEBIAN/conffiles', kept.join(''), 0o644)
  for (const script of maintainerScripts) {
    if (fs.existsSync(path.join(packagingFolder, name, script))) {
      put(`DEBIAN/${script}`, filledIn(text(`${name}/${script}`), words), 0o755)
    }
  }
  settle(folder, '/', folders, options.epoch)
}

const contentOf = (source: string, built: BuiltFiles): Buffer => {
  const made = source.startsWith('built:') ? built[source.slice('built:'.length)] : path.join(root, source)
  if (made === undefined) throw new Error(`${source} was not built`)
  return typeof made === 'string' ? fs.readFileSync(made) : made
}

const filledIn = (text: string, words: Readonly<Record<string, string>>): string =>
  text.replace(/@([A-Z_]+)@/g, (_, word: string) => {
    const value = words[word]
    if (value === undefined) throw new Error(`nothing stands for @${word}@`)
    return value
  })

/** What dpkg compares installed files with; not a protection against anyone. */
const md5Of = (file: string): string => createHash('md5').update(fs.readFileSync(file)).digest('hex')

/** The same modes and times on every machine, whatever its umask and clock. */
const settle = (folder: string, place: string, modes: ReadonlyMap<string, number>, epoch: number): void => {
  for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
    const full = path.join(folder, entry.name)
    if (entry.isDirectory()) settle(full, path.posix.join(place, entry.name), modes, epoch)
    else fs.utimesSync(full, epoch, epoch)
  }
  fs.chmodSync(folder, modes.get(place) ?? 0o755)
  fs.utimesSync(folder, epoch, epoch)
}
