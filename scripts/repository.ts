// Where the repository is and which files it consists of.

import * as fs from 'node:fs'
import * as path from 'node:path'

export const root = path.resolve(import.meta.dirname, '..')

const notOurs = new Set(['node_modules', '.git', 'data', 'n1', 'dist'])

/** Paths below `folder`, relative to `from`, with forward slashes, sorted. */
export const filesBelow = (folder: string, from: string): string[] => {
  const found: string[] = []
  const walk = (at: string): void => {
    for (const entry of fs.readdirSync(at, { withFileTypes: true })) {
      if (notOurs.has(entry.name)) continue
      const full = path.join(at, entry.name)
      if (entry.isDirectory()) walk(full)
      else if (entry.isFile()) found.push(path.relative(from, full).split(path.sep).join('/'))
    }
  }
  if (fs.existsSync(folder)) walk(folder)
  return found.sort()
}

/** What `startOwnThread` starts: each is bundled for itself. */
export const threadFiles = [
  'src/platform/pkcs11-thread.ts',
  'src/platform/signature-thread.ts',
  'src/platform/tls-thread.ts',
] as const
