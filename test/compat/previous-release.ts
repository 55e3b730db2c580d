// The release before this one, as it was: its files from the history of the repository, with the packages installed here.
// `test/compat/previous` names its version and commit.

import { execFileSync, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import type { TestContext } from 'node:test'
import { repository } from '../process/child.ts'
import type { Scope } from '../process/cleanup.ts'
import { tempFolder } from '../process/temp-folder.ts'

export type PreviousRelease = { readonly version: string; readonly command: string }

/**
 * Null after the test has been skipped: the history is not here, as in a shallow clone or an unpacked archive. In CI that
 * is a failure: what was not compared must not pass.
 */
export const previousRelease = (t: Scope & Pick<TestContext, 'skip'>): PreviousRelease | null => {
  const [version = '', commit = ''] = fs
    .readFileSync(path.join(repository, 'test/compat/previous'), 'utf8')
    .trim()
    .split(' ')
  if (!isInHistory(commit)) {
    if (process.env['CI'] === '1') throw new Error(`CI has to have the history: ${version} is commit ${commit}`)
    t.skip(`the commit of ${version} is not in the history here`)
    return null
  }
  const folder = path.join(tempFolder(t), `muster-${version}`)
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

const isInHistory = (commit: string): boolean =>
  spawnSync('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: repository, stdio: 'ignore' }).status === 0
