// Which files below test/ a test file loads, directly or through others.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { importsOf } from './imports-of.ts'

/** With the file itself. What is imported for its types alone is not loaded. */
export const testFilesReached = (root: string, file: string): ReadonlySet<string> => {
  const reached = new Set<string>()
  const visit = (at: string): void => {
    // Tests of the rules quote imports of files that are not there.
    if (reached.has(at) || !fs.existsSync(path.join(root, at))) return
    reached.add(at)
    const text = fs.readFileSync(path.join(root, at), 'utf8')
    for (const { from, typesOnly } of importsOf(at, text)) if (!typesOnly && from.startsWith('test/')) visit(from)
  }
  visit(file)
  return reached
}
