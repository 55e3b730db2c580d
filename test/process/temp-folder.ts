import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { cleanup, type Scope } from './cleanup.ts'

/** A folder of its own, gone after the test. The name is short: a Unix socket below it has to fit into 108 bytes. */
export const tempFolder = (t: Scope): string => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'muster-'))
  cleanup(t, () => fs.rmSync(folder, { recursive: true, force: true, maxRetries: 3 }))
  return folder
}
