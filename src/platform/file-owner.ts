import * as fs from 'node:fs'

/** What root puts into somebody's folder is theirs: they could not read it otherwise. Nothing to do for anybody else. */
export const giveToOwnerOf = (folder: string, file: string): void => {
  if (process.geteuid?.() !== 0) return
  const { uid, gid } = fs.statSync(folder)
  fs.lchownSync(file, uid, gid)
}
