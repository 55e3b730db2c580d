// A small filesystem that can be filled. Root only: ask for the peer `tmpfs` first.

import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { cleanup, type Scope } from './cleanup.ts'

export type Tmpfs = {
  readonly folder: string
  /** Takes all space but `leaveBytes`; all of it, where another process writes meanwhile. */
  fill(leaveBytes: number): void
  /** Gives back what `fill` took. */
  free(): void
}

export const mountTmpfs = (t: Scope, folder: string, sizeBytes: number): Tmpfs => {
  fs.mkdirSync(folder, { recursive: true })
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${sizeBytes},mode=0755`, 'tmpfs', folder])
  cleanup(t, () => void execFileSync('umount', [folder]))
  const ballast = path.join(folder, 'ballast')
  return {
    folder,
    fill(leaveBytes) {
      const { bavail, bsize } = fs.statfsSync(folder)
      const bytes = Math.max(0, bavail * bsize - leaveBytes)
      try {
        fs.writeFileSync(ballast, Buffer.alloc(bytes), { flag: 'a' })
      } catch (error) {
        if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error
      }
    },
    free: () => fs.rmSync(ballast, { force: true }),
  }
}
