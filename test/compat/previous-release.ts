// The release before this one, as it was: its files from the history of the repository, with the packages installed here.
// `test/compat/previous` names its version and commit.

import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { after, type TestContext } from 'node:test'
import { withPeer } from '../peers/peer.ts'
import { repository } from '../process/child.ts'
import type { Scope } from '../process/cleanup.ts'
import { tempFolder } from '../process/temp-folder.ts'

export type PreviousRelease = { readonly version: string; readonly command: string }

/**
 * One copy for all tests of a file, to be called where they are declared: what was compiled is kept by the place of a file.
 * Null after a test has been skipped: the history is not here. In CI that is a failure.
 */
export const previousRelease = (): ((t: Scope & Pick<TestContext, 'skip'>) => PreviousRelease | null) => {
  let release: PreviousRelease | null = null
  let removeIt: () => unknown = () => {}
  const scope = { after: (run: () => unknown) => void (removeIt = run) } as Scope
  after(() => removeIt())
  return (t) => (withPeer(t, 'previous-release') === null ? null : (release ??= unpacked(scope)))
}

const unpacked = (scope: Scope): PreviousRelease => {
  const [version = '', commit = ''] = fs
    .readFileSync(path.join(repository, 'test/compat/previous'), 'utf8')
    .trim()
    .split(' ')
  const folder = path.join(tempFolder(scope), `muster-${version}`)
  fs.mkdirSync(folder)
  const archive = path.join(folder, 'release.tar')
  execFileSync('git', ['archive', '--output', archive, commit, 'bin', 'src', 'muster', 'package.json'], {
    cwd: repository,
  })
  execFileSync('tar', ['-xf', archive, '-C', folder])
  fs.rmSync(archive)
  fs.symlinkSync(path.join(repository, 'node_modules'), path.join(folder, 'node_modules'))
  return { version, command: path.join(folder, 'muster') }
}
