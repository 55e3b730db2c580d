// A file that readers always see whole, and that may be lost in a power cut: for what is rewritten often and worth little.

import * as fs from 'node:fs'
import type { Mode } from './files.ts'

export const replaceUnflushed = (file: string, content: string, mode: Mode): void => {
  const beside = `${file}.new`
  fs.writeFileSync(beside, content, { mode })
  fs.renameSync(beside, file)
}
