// Every file of the repository against scripts/boundary-rules.ts, and the table there against what the files use.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { filesBelow } from './repository.ts'
import { everyPermission, permissionFor, violationsIn } from './boundary-rules.ts'
import { importsOf } from './imports-of.ts'

export const checkBoundaries = (root: string): string[] => {
  const files = ['bin', 'src', 'test', 'bench', 'scripts']
    .flatMap((folder) => filesBelow(path.join(root, folder), root))
    .filter((file) => file.endsWith('.ts'))
    .map((file) => ({ file, text: fs.readFileSync(path.join(root, file), 'utf8') }))
  return [...files.flatMap(({ file, text }) => violationsIn(file, text)), ...unusedPermissions(files)]
}

/** A permission that nobody uses would let an edge come back unseen. */
export const unusedPermissions = (files: readonly { readonly file: string; readonly text: string }[]): string[] => {
  const used = new Set(
    files
      .filter(({ file }) => /^(src|bin)\//.test(file) && !file.endsWith('.test.ts'))
      .flatMap(({ file, text }) => importsOf(file, text).map((wanted) => permissionFor(file, wanted))),
  )
  return everyPermission()
    .filter((permission) => !used.has(permission))
    .map((permission) => `scripts/boundary-rules.ts allows what no file uses: ${permission}`)
}
