// The file systems that this process sees, and which folders in them cannot be changed through any of them.

import * as fs from 'node:fs'

export type Mount = {
  /** As `major:minor`. */
  readonly device: string
  /** The folder of the file system that is seen at `point`. */
  readonly root: string
  readonly point: string
  readonly isReadOnly: boolean
}

/** As in /proc/self/mountinfo; a later one hides an earlier one at the same place. */
export const parseMounts = (text: string): readonly Mount[] =>
  text.split('\n').flatMap((line) => {
    const [, , device, root, point, options] = line.split(' ')
    if (device === undefined || root === undefined || point === undefined || options === undefined) return []
    const isReadOnly = options.split(',').includes('ro')
    return [{ device, root: unescaped(root), point: unescaped(point), isReadOnly }]
  })

/** The kernel writes spaces, tabs, ends of line and backslashes as three octal digits. */
const unescaped = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))

/**
 * Whether a folder, given by its real path, is on a read-only mount, and the same folder is on no writable one. What is not clear is
 * taken for writable: mounts that hide one another, and file systems whose folders have other devices than their mount.
 */
export const isUnchangeable = (folder: string, device: string, mounts: readonly Mount[]): boolean => {
  const [mount] = mounts.filter(({ point }) => isIn(folder, point)).sort((a, b) => b.point.length - a.point.length)
  if (mount === undefined || !mount.isReadOnly || mount.device !== device) return false
  if (mounts.some((other) => other !== mount && other.point === mount.point)) return false
  const place = below(mount.root, folder.slice(mount.point === '/' ? 0 : mount.point.length))
  return !mounts.some((other) => other.device === device && !other.isReadOnly && isIn(place, other.root))
}

const isIn = (place: string, folder: string): boolean =>
  folder === '/' || place === folder || place.startsWith(`${folder}/`)

const below = (folder: string, rest: string): string => (folder === '/' ? rest || '/' : `${folder}${rest}`)

export const isOnReadOnlyMount = (folder: string, { dev }: fs.Stats): boolean => {
  try {
    return isUnchangeable(folder, deviceOf(dev), parseMounts(fs.readFileSync('/proc/self/mountinfo', 'utf8')))
  } catch {
    // Not Linux, or without /proc.
    return false
  }
}

/** As Linux packs both numbers into one. */
const deviceOf = (dev: number): string => {
  const packed = BigInt(dev)
  const major = ((packed >> 8n) & 0xfffn) | ((packed >> 32n) & ~0xfffn)
  const minor = (packed & 0xffn) | ((packed >> 12n) & ~0xffn)
  return `${major}:${minor & 0xffffffffn}`
}
