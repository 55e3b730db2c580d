// Releases before this one, as they were: their files from the history of the repository, with the packages installed here.
// `test/compat/previous` has a line each, with version and commit, newest first.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { after, type TestContext } from 'node:test'
import { buildCommand } from '../../scripts/test-command.ts'
import { withPeer } from '../peers/peer.ts'
import { repository } from '../process/child.ts'
import type { Scope } from '../process/cleanup.ts'
import { tempFolder } from '../process/temp-folder.ts'

export type NamedRelease = { readonly version: string; readonly commit: string }

export const previousReleases = (): readonly NamedRelease[] =>
  fs
    .readFileSync(path.join(repository, 'test/compat/previous'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => {
      const [version = '', commit = ''] = line.split(' ')
      return { version, commit }
    })

/** The release before this one. */
export const releaseBefore = (): NamedRelease =>
  previousReleases()[0] ?? assert.fail('test/compat/previous names no release')

/** For what is about one release and stays true of it, whichever releases follow: its schema, or what it does not know yet. */
export const releaseNamed = (version: string): NamedRelease =>
  previousReleases().find((release) => release.version === version) ??
  assert.fail(`test/compat/previous does not name ${version}`)

/**
 * The command of a release. One copy for all tests of a file, to be called where they are declared. Null after a test has been
 * skipped: the history is not here. In CI that is a failure.
 */
export const commandOf = (release: NamedRelease): ((t: Pick<TestContext, 'skip'>) => Promise<string | null>) => {
  let command: Promise<string> | null = null
  let removeIt: () => unknown = () => {}
  const scope = { after: (run: () => unknown) => void (removeIt = run) } as Scope
  after(() => removeIt())
  return async (t) => (withPeer(t, 'previous-release') === null ? null : (command ??= built(scope, release)))
}

const built = async (scope: Scope, release: NamedRelease): Promise<string> => {
  const folder = sourcesOf(scope, release)
  return buildCommand(folder, folder)
}

/** Of its repository, what it runs from. */
const programFiles: readonly string[] = ['bin', 'src', 'package.json']

/** A folder with the sources of a release, from the history. `parts`: none for the whole of its repository. */
export const sourcesOf = (scope: Scope, { version, commit }: NamedRelease, parts = programFiles): string => {
  const folder = path.join(tempFolder(scope), `muster-${version}`)
  fs.mkdirSync(folder)
  const archive = path.join(folder, 'release.tar')
  execFileSync('git', ['archive', '--output', archive, commit, ...parts], { cwd: repository })
  execFileSync('tar', ['-xf', archive, '-C', folder])
  fs.rmSync(archive)
  fs.symlinkSync(path.join(repository, 'node_modules'), path.join(folder, 'node_modules'))
  return folder
}
