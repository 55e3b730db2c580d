// The licenses of what the executable holds besides Muster: Node.js, and the npm packages that the lock file lists for production.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { root } from './repository.ts'

type LockedPackage = {
  readonly version?: string
  readonly license?: string
  readonly dev?: boolean
  readonly optional?: boolean
}

/** The npm package of the runtime: its LICENSE names all that Node.js holds, and is the same for every architecture. */
const nodeFolder = path.join(root, 'node_modules', `node-${process.platform}-${process.arch}`)

export const thirdPartyLicenses = (): string => {
  const lock = JSON.parse(fs.readFileSync(path.join(root, 'package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, LockedPackage>>
  }
  const folders = Object.entries(lock.packages)
    .filter(([folder, { dev, optional }]) => folder !== '' && dev !== true && optional !== true)
    .map(([folder, { version, license }]) => ({
      title: `${folder.slice(folder.lastIndexOf('node_modules/') + 'node_modules/'.length)} ${version ?? ''} (${license ?? 'see below'})`,
      text: licenseIn(path.join(root, folder)),
    }))
  const node = { title: 'Node.js', text: licenseIn(nodeFolder) }
  return [node, ...folders].map(({ title, text }) => `${'='.repeat(80)}\n${title}\n\n${text.trim()}\n`).join('\n')
}

/** A package without such a file names its license in its manifest, which the title repeats. */
const licenseIn = (folder: string): string => {
  const [name] = fs.existsSync(folder)
    ? fs
        .readdirSync(folder)
        .filter((one) => /^(licen[sc]e|copying)/i.test(one))
        .sort()
    : []
  return name === undefined ? '' : fs.readFileSync(path.join(folder, name), 'utf8')
}
