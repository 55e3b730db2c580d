// Graphics cards and other accelerators, as the PCI bus names them.

import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'

export type Accelerator = { readonly device: string; readonly count: number }

/** Display controllers (VGA, 3D) and processing accelerators. */
const classes = /^0x(0300|0302|1200)/

/** `vendor:device` in hex, sorted. `sys` is where sysfs is mounted. */
export const readAccelerators = (sys: string): readonly Accelerator[] => {
  const counts = new Map<string, number>()
  for (const folder of devicesIn(path.join(sys, 'bus/pci/devices'))) {
    const [vendor, device] = ['vendor', 'device'].map((name) => hexIn(path.join(folder, name)))
    if (vendor === null || device === null || !classes.test(textIn(path.join(folder, 'class')))) continue
    const name = `${vendor}:${device}`
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  return [...counts].map(([device, count]) => ({ device, count })).sort((a, b) => (a.device < b.device ? -1 : 1))
}

export const kernelRelease = (): string => os.release()

const devicesIn = (folder: string): readonly string[] => {
  try {
    return fs.readdirSync(folder).map((name) => path.join(folder, name))
  } catch {
    return []
  }
}

const textIn = (file: string): string => {
  try {
    return fs.readFileSync(file, 'utf8').trim()
  } catch {
    return ''
  }
}

const hexIn = (file: string): string | null => /^0x([0-9a-f]{4})$/.exec(textIn(file))?.[1] ?? null
