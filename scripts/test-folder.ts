// Where the files of a run of the tests are: in memory where there is room for them. None of them outlives the run, and a disk
// takes a tenth of the processors' time of the tests for what is thrown away a second later.

import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'

const memoryFolder = '/dev/shm'
/** The files of a short run take up to two at a time, the processes of its tests another two. */
const roomBytes = 4 * 1024 ** 3
/** Of a tmpfs, by `statfs(2)`. */
const memoryFileSystem = 0x01021994

/** A new one; gone with this process. A long run is for days and for disks. */
export const openTestFolder = (long: boolean, memory = memoryFolder): string => {
  const parent = !long && hasRoom(memory) ? memory : os.tmpdir()
  removeAbandoned(parent)
  const folder = fs.mkdtempSync(path.join(parent, `${prefix}${process.pid}-`))
  process.once('exit', () => fs.rmSync(folder, { recursive: true, force: true, maxRetries: 3 }))
  // As any temporary folder: PostgreSQL runs as a user of its own, and so does what installs a peer.
  fs.chmodSync(folder, 0o1777)
  return folder
}

const prefix = 'muster-run-'

/** Those of runs that were killed, or interrupted while their processes still wrote: memory must not stay taken. */
const removeAbandoned = (parent: string): void => {
  for (const name of fs.readdirSync(parent)) {
    const pid = name.startsWith(prefix) ? Number(/^\d+/.exec(name.slice(prefix.length))?.[0]) : NaN
    if (Number.isNaN(pid) || isRunning(pid)) continue
    const folder = path.join(parent, name)
    try {
      // That of another user cannot be removed, and is not ours to remove.
      if (fs.statSync(folder).uid === process.getuid?.()) fs.rmSync(folder, { recursive: true, force: true })
    } catch {
      // Another run removes it at the same time, or its processes still write: the next run tries again.
    }
  }
}

const isRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // One of another user may not be signalled, and runs.
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

const hasRoom = (folder: string): boolean => {
  try {
    const { type, bavail, bsize } = fs.statfsSync(folder)
    return type === memoryFileSystem && Math.min(bavail * bsize, availableBytes()) >= roomBytes && runsPrograms(folder)
  } catch {
    return false
  }
}

/** What can be had without swapping: what is cached counts. */
const availableBytes = (): number =>
  1024 * Number(/^MemAvailable:\s*(\d+) kB$/m.exec(fs.readFileSync('/proc/meminfo', 'utf8'))?.[1] ?? 0)

/** Containers often mount it with noexec. */
const runsPrograms = (folder: string): boolean => {
  const probe = path.join(folder, `muster-probe-${process.pid}`)
  try {
    fs.writeFileSync(probe, '', { mode: 0o700 })
    fs.accessSync(probe, fs.constants.X_OK)
    return true
  } finally {
    fs.rmSync(probe, { force: true })
  }
}
