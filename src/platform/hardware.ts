// What the system says of the machine it runs on.

import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { readFileIfAny } from './files.ts'

export type MachineFacts = {
  readonly cpuCores: number
  readonly memoryBytes: number
  readonly diskBytes: number
  readonly arch: string
}

export type MachineIdentity = {
  /** Of physical network interfaces; lower case, sorted, no duplicates. */
  readonly macs: readonly string[]
  /** Null where the firmware has none, or only root may read it. */
  readonly serial: string | null
  /** All other interfaces except the loopback one, and why they are no way to recognise the machine. */
  readonly passedOver: readonly string[]
}

export const readMachineFacts = (): MachineFacts => {
  const root = fs.statfsSync('/')
  return {
    cpuCores: os.cpus().length,
    memoryBytes: os.totalmem(),
    diskBytes: root.blocks * root.bsize,
    arch: os.machine(),
  }
}

/** `sys` is where sysfs is mounted. */
export const readMachineIdentity = (sys: string): MachineIdentity => {
  const cards = interfaces(sys).map((name) => ({ name, ...cardIn(path.join(sys, 'class/net', name)) }))
  return {
    macs: [...new Set(cards.flatMap(({ mac }) => mac ?? []))].sort(),
    serial:
      ['product_serial', 'board_serial', 'chassis_serial']
        .map((name) => lineIn(path.join(sys, 'class/dmi/id', name)))
        .find((serial) => serial !== null && !isPlaceholder(serial)) ?? null,
    passedOver: cards
      .flatMap(({ name, mac, why }) => (mac === null && name !== 'lo' ? [`${name} (${why})`] : []))
      .sort(),
  }
}

const interfaces = (sys: string): string[] => {
  try {
    return fs.readdirSync(path.join(sys, 'class/net'))
  } catch {
    return []
  }
}

type Card = { readonly mac: string; readonly why: null } | { readonly mac: null; readonly why: string }

/** Only hardware has a `device`; bridges, tunnels and bonds do not. A bonded card answers with the bond's address. */
const cardIn = (folder: string): Card => {
  if (!fs.existsSync(path.join(folder, 'device'))) return { mac: null, why: 'no hardware' }
  const mac = (
    lineIn(path.join(folder, 'bonding_slave/perm_hwaddr')) ??
    lineIn(path.join(folder, 'address')) ??
    ''
  ).toLowerCase()
  const isUsable = /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/.test(mac) && mac !== '00:00:00:00:00:00'
  return isUsable ? { mac, why: null } : { mac: null, why: 'no Ethernet address' }
}

const lineIn = (file: string): string | null => {
  try {
    const line = fs.readFileSync(file, 'utf8').trim()
    return line === '' || line.length > 128 ? null : line
  } catch {
    return null
  }
}

/** Boards leave the factory with words instead of a number: thousands of machines share them. */
const isPlaceholder = (serial: string): boolean =>
  /^(0+|x+|\.+|none|n\/?a|default string|not (specified|applicable|available)|unknown|empty|to be filled by o\.?e\.?m\.?|(system|base ?board|chassis) serial number|123456789)$/i.test(
    serial,
  )

/** What systemd calls this installation; null where there is none, or none that tells machines apart. */
export const readMachineId = (file = '/etc/machine-id'): string | null => {
  try {
    const id = (readFileIfAny(file) ?? '').trim()
    return /^[0-9a-f]{32}$/.test(id) && !/^0+$/.test(id) ? id : null
  } catch {
    return null
  }
}
