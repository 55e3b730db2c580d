import * as fs from 'node:fs'
import type { Owner } from './files.ts'

/** What root puts into somebody's folder is theirs: they could not read it otherwise. Null: nothing to do for anybody else. */
export const ownerForFolder = (folder: string): Owner | null => (process.geteuid?.() === 0 ? fs.statSync(folder) : null)

/** Whom this process runs as. */
export const processOwner = (): Owner => ({ uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 })
