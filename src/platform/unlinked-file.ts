// A file with a descriptor and no name, for passing a secret to another program: it cannot be left behind, and no other
// process can open it.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { errno } from './files.ts'
import { systemRandom } from './random.ts'

/** TMPFS_MAGIC of statfs(2). */
const tmpfsType = 0x0102_1994
const inMemory = ['/run', '/dev/shm', '/tmp']

/**
 * Runs with the descriptor of a file of mode 0600 that holds the text, and closes it afterwards. The file is in memory, or below
 * `onDisk` if no memory file system is writable. `onDisk` null: the text must not reach a disk, and the call throws instead.
 */
export const withUnlinkedFile = async <T>(
  text: string,
  onDisk: string | null,
  run: (fd: number) => Promise<T>,
): Promise<T> => {
  const fd = openUnlinked([...inMemory.filter(isInMemory), ...(onDisk === null ? [] : [onDisk])])
  try {
    fs.writeFileSync(fd, text)
    return await run(fd)
  } finally {
    fs.closeSync(fd)
  }
}

/** Whether what is written there stays in memory. False for a folder that is not there. */
export const isInMemory = (folder: string): boolean => {
  try {
    return fs.statfsSync(folder).type === tmpfsType
  } catch {
    return false
  }
}

const openUnlinked = (folders: readonly string[]): number => {
  let trouble: unknown = new Error('there is no folder in memory to write in')
  for (const folder of folders) {
    const file = path.join(folder, `.muster-${systemRandom.bytes(12).toString('hex')}`)
    try {
      const fd = fs.openSync(file, fs.constants.O_RDWR | fs.constants.O_CREAT | fs.constants.O_EXCL, 0o600)
      fs.unlinkSync(file)
      return fd
    } catch (error) {
      trouble = error
      if (!['EACCES', 'EROFS', 'ENOSPC', 'EDQUOT', 'ENOENT', 'EPERM'].includes(errno(error) ?? '')) throw error
    }
  }
  throw trouble
}
