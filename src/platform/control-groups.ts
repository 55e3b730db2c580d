// Control groups of the kernel, for programs that must not take more than their share and that must end with all they started: of
// version 2 where it has the controllers, else of version 1.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { endGroup, removeGroup, signalAll, textIn, write, writeIfAny } from './control-group-folder.ts'

export type GroupLimits = { readonly memoryBytes: number; readonly mostProcesses: number }

export type ControlGroup = {
  /** A process that writes its pid to each of these files is in the group. */
  readonly entrances: readonly string[]
  signal(signal: NodeJS.Signals): void
  /** SIGKILL to all of it until nothing is left, and the group is removed. False: something does not end. */
  end(): Promise<boolean>
  /** Whether something in it was killed for want of memory. */
  ranOutOfMemory(): boolean
}

export type ControlGroups = {
  readonly version: 1 | 2
  /** Null: no group with these limits can be made. */
  make(name: string, limits: GroupLimits): ControlGroup | null
  /** One that an earlier process made; null: there is none. */
  find(name: string): Pick<ControlGroup, 'end'> | null
}

type Mount = {
  readonly root: string
  readonly place: string
  readonly type: string
  readonly options: readonly string[]
}

/** What the kernel shows this process. */
export type KernelGroups = {
  /** As /proc/self/mountinfo is written. */
  readonly mounts: string
  /** As /proc/self/cgroup is written. */
  readonly own: string
  /** Throws what the system says. The kernel fills the folder with the files of a group. */
  makeFolder(folder: string): void
}

const readKernel = (): KernelGroups => ({
  mounts: textIn('/proc/self/mountinfo'),
  own: textIn('/proc/self/cgroup'),
  makeFolder: (folder) => fs.mkdirSync(folder),
})

/** Null: the host has none that this process may use. */
export const openControlGroups = (kernel: KernelGroups = readKernel()): ControlGroups | null => {
  const mounts = mountsIn(kernel.mounts)
  const own = ownGroupsIn(kernel.own)
  const unified = mounts.find(({ type }) => type === 'cgroup2')
  const home = unified === undefined ? null : ownFolder(unified, own.get('') ?? '/')
  const second = unified === undefined || home === null ? null : secondVersion(home, unified.place, kernel)
  if (second !== null) return second
  const folderOf = (controller: string): string | null => {
    const mount = mounts.find(({ type, options }) => type === 'cgroup' && options.includes(controller))
    return mount === undefined ? null : ownFolder(mount, own.get(controller) ?? '/')
  }
  const [memory, pids] = [folderOf('memory'), folderOf('pids')]
  return memory === null || pids === null ? null : firstVersion({ memory, pids }, kernel)
}

/**
 * Which controllers the kernel has for the groups of this host, made by this process or another: systemd takes a limit without its controller and
 * sets none. `mountinfo`: that of /proc. Pure but for `readText`.
 */
export const controllersOfHost = (
  mountinfo: string = textIn('/proc/self/mountinfo'),
  readText: (file: string) => string = textIn,
): readonly string[] =>
  mountsIn(mountinfo).flatMap(({ type, place, options }) =>
    type === 'cgroup2' ? readText(path.join(place, 'cgroup.controllers')).trim().split(/\s+/) : options,
  )

/** Null: in a container it may not be visible, and then this process could not come back to it. */
const ownFolder = ({ root, place }: Mount, group: string): string | null => {
  if (root !== '/' && group !== root && !group.startsWith(`${root}/`)) return null
  const folder = path.join(place, root === '/' ? group : group.slice(root.length))
  return fs.existsSync(path.join(folder, 'cgroup.procs')) ? folder : null
}

/** Below the group of this process, or below the topmost, which may have processes of its own and groups with limits. */
const secondVersion = (
  home: string,
  top: string,
  { makeFolder }: Pick<KernelGroups, 'makeFolder'>,
): ControlGroups | null => {
  const usable = [...new Set([home, path.normalize(top)])].filter((parent) => {
    const controllers = wordsIn(path.join(parent, 'cgroup.controllers'))
    return controllers.includes('memory') && controllers.includes('pids')
  })
  if (usable.length === 0) return null
  const groupAt = (folder: string): ControlGroup => ({
    entrances: [entranceOf(folder)],
    signal: (signal) => void signalAll(folder, signal),
    end: () => endGroup([folder]),
    ranOutOfMemory: () => /^oom_kill [1-9]/m.test(textIn(path.join(folder, 'memory.events'))),
  })
  return {
    version: 2,
    make: (name, limits) => {
      for (const parent of usable) {
        const folder = path.join(parent, name)
        // Refused (EBUSY) in a group that has processes of its own and is not the topmost: the next parent is tried.
        const isMade = made([folder], () => {
          const enabled = wordsIn(path.join(parent, 'cgroup.subtree_control'))
          if (!enabled.includes('memory') || !enabled.includes('pids'))
            write(path.join(parent, 'cgroup.subtree_control'), '+memory +pids')
          makeFolder(folder)
          write(path.join(folder, 'memory.max'), String(limits.memoryBytes))
          writeIfAny(path.join(folder, 'memory.swap.max'), '0')
          writeIfAny(path.join(folder, 'memory.oom.group'), '1')
          write(path.join(folder, 'pids.max'), String(limits.mostProcesses))
        })
        if (isMade) return groupAt(folder)
      }
      return null
    },
    find: (name) => {
      const parent = usable.find((one) => fs.existsSync(path.join(one, name)))
      return parent === undefined ? null : groupAt(path.join(parent, name))
    },
  }
}

const firstVersion = (
  homes: { readonly memory: string; readonly pids: string },
  { makeFolder }: Pick<KernelGroups, 'makeFolder'>,
): ControlGroups => {
  const groupOf = (name: string): ControlGroup => {
    const [memory, pids] = [path.join(homes.memory, name), path.join(homes.pids, name)]
    return {
      entrances: [memory, pids].map(entranceOf),
      signal: (signal) => void signalAll(pids, signal),
      end: () => endGroup([pids, memory]),
      ranOutOfMemory: () => /^oom_kill [1-9]/m.test(textIn(path.join(memory, 'memory.oom_control'))),
    }
  }
  return {
    version: 1,
    make: (name, { memoryBytes, mostProcesses }) => {
      const [memory, pids] = [path.join(homes.memory, name), path.join(homes.pids, name)]
      const isMade = made([memory, pids], () => {
        makeFolder(memory)
        makeFolder(pids)
        write(path.join(memory, 'memory.limit_in_bytes'), String(memoryBytes))
        writeIfAny(path.join(memory, 'memory.memsw.limit_in_bytes'), String(memoryBytes))
        write(path.join(pids, 'pids.max'), String(mostProcesses))
      })
      return isMade ? groupOf(name) : null
    },
    find: (name) =>
      fs.existsSync(path.join(homes.pids, name)) || fs.existsSync(path.join(homes.memory, name)) ? groupOf(name) : null,
  }
}

const entranceOf = (folder: string): string => path.join(folder, 'cgroup.procs')

/**
 * What was made of them is removed where one of them cannot be. A process that was killed before it started anything in a group leaves
 * it empty, and would keep its name from being used again; one that is in use is not removed by this.
 */
const made = (folders: readonly string[], make: () => void): boolean => {
  folders.forEach(removeGroup)
  try {
    make()
    return true
  } catch {
    folders.forEach(removeGroup)
    return false
  }
}

const wordsIn = (file: string): readonly string[] => textIn(file).split(/\s+/)

const mountsIn = (mountinfo: string): readonly Mount[] =>
  mountinfo.split('\n').flatMap((line) => {
    const [before = '', after = ''] = line.split(' - ')
    const [, , , root, place] = before.split(' ')
    const [type, , options = ''] = after.split(' ')
    if (root === undefined || place === undefined || type?.startsWith('cgroup') !== true) return []
    return [{ root, place, type, options: options.split(',') }]
  })

/** By controller; '' is that of version 2. Pure. */
const ownGroupsIn = (own: string): ReadonlyMap<string, string> =>
  new Map(
    own.split('\n').flatMap((line) => {
      const [, controllers, ...group] = line.split(':')
      return controllers === undefined
        ? []
        : controllers.split(',').map((one): [string, string] => [one, group.join(':')])
    }),
  )
