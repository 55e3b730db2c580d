// Health checks that the agent brings along: a file system that the kernel made read-only, and GPUs that are missing. They read
// /proc and /sys, which are arguments: a test has trees of its own.

import * as path from 'node:path'
import { readAccelerators } from '#platform/accelerators.ts'
import { readFileIfAny } from '#platform/files.ts'
import { namesIn } from '#platform/folder.ts'

export type Trees = { readonly proc: string; readonly sys: string }

export const machineTrees: Trees = { proc: '/proc', sys: '/sys' }

export type CheckResult = { readonly state: 'passed' | 'failed' | 'not_run'; readonly line: string }

const passed = (line: string): CheckResult => ({ state: 'passed', line })
const failed = (line: string): CheckResult => ({ state: 'failed', line })

/** Null: not one of them. Without the helper no process here may read the kernel's log. */
export const shippedCheck = (command: readonly string[], trees: Trees): CheckResult | null => {
  const [name = '', ...args] = command
  switch (name) {
    case 'muster:read-only':
      return readOnly(args, trees)
    case 'muster:gpus':
      return gpus(args, trees)
    case 'muster:kernel-errors':
      return { state: 'not_run', line: "needs muster-agent-helper: the agent may not read the kernel's log" }
    default:
      return name.startsWith('muster:') ? { state: 'not_run', line: `this agent has no check ${name}` } : null
  }
}

type Mount = { readonly device: string; readonly place: string; readonly type: string; readonly readOnly: boolean }

/** Made to be read only. */
const alwaysReadOnly = ['squashfs', 'iso9660', 'erofs', 'cramfs']

/** `muster:read-only [PATH...]`: the file systems that hold these; without any, every one on a block device. */
const readOnly = (paths: readonly string[], { proc }: Trees): CheckResult => {
  const mounts = mountsIn(readFileIfAny(path.join(proc, 'self/mounts')) ?? '')
  if (mounts.length === 0) return { state: 'not_run', line: `${path.join(proc, 'self/mounts')} cannot be read` }
  const looked =
    paths.length === 0
      ? mounts.filter(({ device, type }) => device.startsWith('/dev/') && !alwaysReadOnly.includes(type))
      : paths.flatMap((one) => holding(one, mounts) ?? [])
  const bad = looked.filter((mount) => mount.readOnly)
  if (bad.length > 0) return failed(`read-only: ${bad.map(({ place, device }) => `${place} (${device})`).join(', ')}`)
  return passed(
    looked.length === 0
      ? 'no file system is on a disk: there is nothing to look at'
      : `${looked.length} file systems can be written`,
  )
}

/** The kernel writes spaces and backslashes in octal. */
const unescaped = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_whole, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))

const mountsIn = (text: string): readonly Mount[] =>
  text.split('\n').flatMap((line) => {
    const [device, place, type, options] = line.split(' ')
    if (device === undefined || place === undefined || type === undefined || options === undefined) return []
    return [{ device, place: unescaped(place), type, readOnly: options.split(',').includes('ro') }]
  })

/** The last of the longest: a later mount covers an earlier one. */
const holding = (file: string, mounts: readonly Mount[]): Mount | null =>
  mounts
    .filter(({ place }) => place === '/' || file === place || file.startsWith(`${place}/`))
    .reduce<Mount | null>(
      (best, mount) => (best === null || mount.place.length >= best.place.length ? mount : best),
      null,
    )

/**
 * `muster:gpus [COUNT [VENDOR]]`: so many on the PCI bus, and as many at NVIDIA's driver where it is loaded. A GPU that fell off
 * the bus is missing in the first, one that its driver gave up in the second.
 */
const gpus = ([count, vendor]: readonly string[], { proc, sys }: Trees): CheckResult => {
  const wanted = count === undefined ? null : Number(count)
  if (wanted !== null && !(Number.isSafeInteger(wanted) && wanted >= 0))
    return { state: 'not_run', line: 'muster:gpus takes a number, and a vendor such as 10de' }
  const accelerators = readAccelerators(sys)
  const onBus = sum(accelerators.filter(({ device }) => vendor === undefined || device.startsWith(`${vendor}:`)))
  if (wanted !== null && onBus < wanted) return failed(`${onBus} of ${wanted} GPUs on the PCI bus`)
  const nvidia = sum(accelerators.filter(({ device }) => device.startsWith('10de:')))
  const atDriver = namesIn(path.join(proc, 'driver/nvidia/gpus')).length
  const isLoaded = readFileIfAny(path.join(proc, 'driver/nvidia/version')) !== null
  if (isLoaded && atDriver < nvidia) return failed(`${atDriver} of ${nvidia} GPUs at the NVIDIA driver`)
  return passed(`${onBus} GPUs on the PCI bus${isLoaded ? `, ${atDriver} at the NVIDIA driver` : ''}`)
}

const sum = (some: readonly { readonly count: number }[]): number => some.reduce((all, { count }) => all + count, 0)
