// The Debian packages as `npm run build:deb` makes them, with a short script in the place of the executable: what they contain, say and run.
// Installed, upgraded and removed they are in installed-packages.test.ts.

import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { after, test } from 'node:test'
import { buildDebs, packageVersion, type BuiltDeb } from '../../scripts/build-deb.ts'
import {
  debianPackages,
  installedBy,
  maintainerScripts,
  packagingFolder,
  type DebianPackage,
} from '../../scripts/debian-tree.ts'
import { planeSettings } from '#plane/config/settings.ts'
import { newestSchema, releaseOfSchema } from '#plane/store/postgres/schema-since.ts'
import { parseSettingsFile } from '#platform/settings-file.ts'
import { peer } from '../peers/peer.ts'
import { repository } from '../process/child.ts'

const isMissing = 'missing' in peer('dpkg-deb')
const skip = isMissing ? 'dpkg-deb is not installed' : false

const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'muster-'))
after(() => fs.rmSync(scratch, { recursive: true, force: true }))

const buildAll = (out: string): readonly BuiltDeb[] => {
  const executable = path.join(scratch, 'executable')
  fs.writeFileSync(executable, '#!/bin/sh\n')
  return buildDebs({ arch: 'x64', executable, out: path.join(scratch, out), level: 0 })
}

const packages = isMissing ? [] : buildAll('first')

const fileOf = (name: DebianPackage): string => packages.find((one) => one.name === name)?.file ?? ''
const dpkgDeb = (...args: string[]): string => execFileSync('dpkg-deb', args, { encoding: 'utf8' })
const field = (name: DebianPackage, wanted: string): string => dpkgDeb('--field', fileOf(name), wanted).trim()

test('the same sources make the same packages, whatever the umask is', { skip }, () => {
  const usual = process.umask(0o077)
  try {
    assert.deepEqual(
      buildAll('second').map(({ name, sha256 }) => [name, sha256]),
      packages.map(({ name, sha256 }) => [name, sha256]),
    )
  } finally {
    process.umask(usual)
  }
})

test('the version is that of package.json, and agent and plane come with exactly that executable', { skip }, () => {
  const version = packageVersion()
  for (const name of debianPackages) assert.equal(field(name, 'Version'), version)
  assert.match(field('muster', 'Architecture'), /^amd64$/)
  for (const name of ['muster-agent', 'muster-plane'] as const) {
    assert.equal(field(name, 'Architecture'), 'all')
    assert.match(field(name, 'Depends'), new RegExp(`^muster \\(= ${version.replaceAll('.', '\\.')}\\),`))
  }
  const changelog = fs.readFileSync(path.join(packagingFolder, 'changelog'), 'utf8')
  assert.ok(changelog.startsWith(`muster (${version}) `), 'the changelog begins with this version')
})

test('every file is there with the mode that install gives it, and everything belongs to root', { skip }, () => {
  for (const name of debianPackages) {
    const listed = dpkgDeb('--contents', fileOf(name)).trim().split('\n')
    const entries = listed.map((line) => {
      const [mode = '', owner = '', , , , place = ''] = line.split(/\s+/)
      return { mode, owner, place: place.replace(/^\.|\/$/g, '') }
    })
    assert.deepEqual([...new Set(entries.map(({ owner }) => owner))], ['root/root'])
    for (const { place, mode } of installedBy(name)) {
      const entry = entries.find((one) => one.place === place)
      assert.equal(entry?.mode.slice(1), bits(mode), `${name}: ${place}`)
    }
    // Neither a socket nor a set-user-id bit, and nothing that others may write.
    assert.deepEqual(
      entries.filter(({ mode }) => !/^[-d]([r-][w-][x-]){1}[r-]-[x-][r-]-[x-]$/.test(mode)),
      [],
    )
  }
})

const bits = (mode: number): string =>
  [6, 3, 0]
    .map((shift) => ['r', 'w', 'x'].map((letter, at) => (((mode >> shift) & (4 >> at)) === 0 ? '-' : letter)).join(''))
    .join('')

test('what is in /etc is kept when an administrator has changed it', { skip }, () => {
  const conffiles = (name: DebianPackage): string[] => dpkgDeb('--info', fileOf(name), 'conffiles').trim().split('\n')
  assert.deepEqual(conffiles('muster-plane'), ['/etc/muster/plane.toml'])
  assert.deepEqual(conffiles('muster-agent'), ['/etc/systemd/journald@muster-agent.conf'])
})

test('plane.toml is taken by a plane, also with every setting that it shows', () => {
  const text = fs.readFileSync(path.join(packagingFolder, 'muster-plane/plane.toml'), 'utf8')
  const whole = text.replace(/^#(\w+ = )/gm, '$1')
  assert.notEqual(whole, text)
  for (const one of [text, whole]) assert.deepEqual(parseSettingsFile('plane.toml', one, planeSettings).problems, [])
  const { entries } = parseSettingsFile('plane.toml', text, planeSettings)
  assert.deepEqual([...entries.keys()], ['data'], 'the name of the domain is left to an administrator')
})

test('maintainer scripts are shell that stops at the first error, with nothing left to fill in', { skip }, () => {
  for (const name of debianPackages) {
    for (const script of maintainerScripts) {
      if (!fs.existsSync(path.join(packagingFolder, name, script))) continue
      const text = dpkgDeb('--info', fileOf(name), script)
      assert.match(text, /^#!\/bin\/sh\n(#.*\n)*set -e\n/)
      assert.doesNotMatch(text, /@[A-Z_]+@/)
      execFileSync('sh', ['-n'], { input: text, stdio: ['pipe', 'pipe', 'pipe'] })
    }
  }
})

test(
  'a package keeps the executable of a plane from being replaced by a release that cannot read its store',
  { skip },
  () => {
    for (const name of ['muster', 'muster-plane'] as const) {
      const prerm = dpkgDeb('--info', fileOf(name), 'prerm')
      assert.match(prerm, new RegExp(`^oldest_reader=${releaseOfSchema[newestSchema].replaceAll('.', '\\.')}$`, 'm'))
      // Called where the script of the installed package has failed: a newer one has refused, an older one may be broken.
      const afterFailure = (installed: string): number | null =>
        spawnSync('sh', ['-s', 'failed-upgrade', installed, packageVersion()], { input: prerm }).status
      assert.deepEqual([afterFailure('99.0.0'), afterFailure('0.4.0')], [1, 0])
    }
  },
)

test('units run the executable where the package has it', { skip }, () => {
  const executables = installedBy('muster').flatMap(({ place }) => (place.startsWith('/usr/bin/') ? [place] : []))
  assert.deepEqual(executables, ['/usr/bin/muster'])
  for (const name of ['muster-agent', 'muster-plane'] as const) {
    const units = installedBy(name).flatMap((one) =>
      one.kind === 'file' && one.place.endsWith('.service') ? [one.source] : [],
    )
    const commands = units.flatMap(
      (unit) => fs.readFileSync(path.join(repository, unit), 'utf8').match(/^ExecStart=\S+/gm) ?? [],
    )
    assert.deepEqual(
      [...new Set(commands)].filter((command) => !['ExecStart=/usr/bin/muster', 'ExecStart=/bin/sh'].includes(command)),
      [],
    )
  }
})

/** Which package of Debian has which library. */
const packageOfLibrary: Readonly<Record<string, string>> = {
  'ld-linux': 'libc6',
  'libatomic.so.1': 'libatomic1',
  'libc.so.6': 'libc6',
  'libdl.so.2': 'libc6',
  'libgcc_s.so.1': 'libgcc-s1',
  'libm.so.6': 'libc6',
  'libpthread.so.0': 'libc6',
  'librt.so.1': 'libc6',
  'libstdc++.so.6': 'libstdc++6',
}

test('the package depends on every library that the runtime loads', { skip }, () => {
  const report = process.report.getReport() as unknown as { readonly sharedObjects: readonly string[] }
  const libraries = report.sharedObjects
    .map((file) => path.basename(file))
    .filter((name) => /^(lib|ld-).*\.so/.test(name))
  const depends = field('muster', 'Depends')
    .split(', ')
    .map((one) => one.split(' ')[0])
  for (const library of libraries) {
    const owner = Object.entries(packageOfLibrary).find(([name]) => library.startsWith(name))?.[1]
    assert.ok(
      owner !== undefined && depends.includes(owner),
      `${library} is of a package that the executable does not depend on`,
    )
  }
})
