// Hardware identity finds a node's row (ruling 11), so it has to distinguish machines: values that many machines share are
// refused before they become a key.

import type { HardwareIdentity } from './node.ts'
import { boundedText } from './change.ts'
import { refuseField, type Refusal } from './refusal.ts'

const mostMacs = 64
const longestSerial = 128

/** Lower case with colons; takes `AA-BB-..`, `AABB.CCDD.EEFF` and bare digits too. Null: not the address of one interface. */
export const normaliseMac = (text: string): string | null => {
  const written = text.trim().toLowerCase()
  const shapes = [/^([0-9a-f]{2}:){5}[0-9a-f]{2}$/, /^([0-9a-f]{2}-){5}[0-9a-f]{2}$/, /^([0-9a-f]{4}\.){2}[0-9a-f]{4}$/]
  if (!shapes.some((shape) => shape.test(written)) && !/^[0-9a-f]{12}$/.test(written)) return null
  const octets = written.replace(/[:.-]/g, '').match(/../g)
  if (octets === null) return null
  const mac = octets.join(':')
  const multicast = (Number.parseInt(mac.slice(0, 2), 16) & 1) === 1
  // Broadcast has the multicast bit too.
  return multicast || mac === '00:00:00:00:00:00' ? null : mac
}

// Placeholders that board makers leave in SMBIOS in place of a serial number.
const placeholders = new Set([
  'to be filled by o.e.m.',
  'to be filled by oem',
  'default string',
  'system serial number',
  'chassis serial number',
  'base board serial number',
  'serial number',
  'not specified',
  'not applicable',
  'not available',
  'not present',
  'no asset tag',
  'none',
  'null',
  'n/a',
  'na',
  'oem',
  'o.e.m.',
  'empty',
  'unknown',
  'invalid',
  '123456789',
  '0123456789',
  '1234567890',
])

/** True of a serial number that many machines share. */
export const isPlaceholderSerial = (text: string): boolean => {
  const serial = text.trim().toLowerCase()
  // One character over and over: `0`, `00000000`, `xxxxxxxx`, `.....`.
  return serial === '' || placeholders.has(serial) || /^(.)\1*$/.test(serial)
}

export const hardwareIdentity = (macs: readonly string[], bmcSerial: string | null): HardwareIdentity | Refusal => {
  if (macs.length > mostMacs) return refuseField('REQUEST_INVALID', 'macs', `at most ${mostMacs} MAC addresses a node`)
  const normal = new Set<string>()
  for (const text of macs) {
    const mac = normaliseMac(text)
    if (mac === null) {
      return refuseField(
        'REQUEST_INVALID',
        'macs',
        `${boundedText(text, 32)} is not the MAC address of one network interface`,
      )
    }
    normal.add(mac)
  }
  if (bmcSerial === null) return { macs: [...normal].sort(), bmcSerial: null }
  const serial = bmcSerial.trim()
  if (isPlaceholderSerial(serial)) {
    return refuseField(
      'REQUEST_INVALID',
      'bmc_serial',
      `the BMC serial "${boundedText(serial, 32)}" is one that many machines share; leave it out`,
    )
  }
  if (serial.length > longestSerial || serial !== boundedText(serial, longestSerial)) {
    return refuseField(
      'REQUEST_INVALID',
      'bmc_serial',
      `a BMC serial has at most ${longestSerial} printable characters`,
    )
  }
  return { macs: [...normal].sort(), bmcSerial: serial }
}

/** No MAC and no serial: nothing could ever be found by it. */
export const isBlank = (hardware: HardwareIdentity): boolean =>
  hardware.macs.length === 0 && hardware.bmcSerial === null

export const sameHardware = (one: HardwareIdentity, other: HardwareIdentity): boolean =>
  one.bmcSerial === other.bmcSerial && one.macs.join() === other.macs.join()

/** For people: `aa:bb:.. and BMC serial X`. */
export const hardwareWords = (hardware: HardwareIdentity): string => {
  const serial = hardware.bmcSerial === null ? [] : [`BMC serial ${hardware.bmcSerial}`]
  return [...hardware.macs, ...serial].join(', ') || 'no hardware identity'
}

/** A registered BMC serial has to be there exactly; of registered MACs at least one, since network cards get replaced. */
export const hardwareMatches = (registered: HardwareIdentity, reported: HardwareIdentity): boolean => {
  if (registered.bmcSerial === null && registered.macs.length === 0) return false
  if (registered.bmcSerial !== null && registered.bmcSerial !== reported.bmcSerial) return false
  return registered.macs.length === 0 || registered.macs.some((mac) => reported.macs.includes(mac))
}
