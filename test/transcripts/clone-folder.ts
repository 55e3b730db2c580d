// What a stranger has after `git clone` and `npm ci`: this repository, seen from a folder of its own.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { repository } from '../process/child.ts'
import type { Scope } from '../process/cleanup.ts'
import { tempFolder } from '../process/temp-folder.ts'

/** `command`: what is `./muster` there. */
export const cloneFolder = (t: Scope, command: string): string => {
  const folder = tempFolder(t)
  for (const name of ['package.json', 'bin', 'node_modules']) {
    fs.symlinkSync(path.join(repository, name), path.join(folder, name))
  }
  fs.symlinkSync(command, path.join(folder, 'muster'))
  return folder
}
