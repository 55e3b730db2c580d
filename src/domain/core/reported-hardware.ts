// The hardware that a node reports itself: kept from its enrollment on, and compared when it recovers or is repaired. It is
// the node's own word, so it finds no row and admits no machine. It shows that an identity has moved to another machine whose agent
// is honest: a disk in another chassis, a copy of a virtual machine.

import { boundedText } from './change.ts'
import { isBlank, isPlaceholderSerial } from './hardware-identity.ts'
import type { HardwareIdentity, Node } from './node.ts'

/** Null: nothing is known, as of a node whose epoch a release before 0.4.0 started. */
export const knownHardware = ({ reportedHardware, epoch }: Node): HardwareIdentity | null =>
  reportedHardware?.epoch === epoch ? reportedHardware : null

/**
 * A serial number may be readable at one time and not at another, and one network card of several may have been replaced. A machine
 * that shows nothing of what is known counts as another one.
 */
export const isOtherMachine = (known: HardwareIdentity, shown: HardwareIdentity): boolean => {
  const serials = known.bmcSerial === null || shown.bmcSerial === null ? null : known.bmcSerial === shown.bmcSerial
  const macs =
    known.macs.length === 0 || shown.macs.length === 0 ? null : shown.macs.some((mac) => known.macs.includes(mac))
  if (serials === false || macs === false) return true
  return serials === null && macs === null
}

/** By the word of the machine that asks as this node. An operator knows whether its parts were replaced. */
export const hasMoved = (node: Node, shown: HardwareIdentity): boolean => {
  const known = knownHardware(node)
  return known !== null && isOtherMachine(known, shown)
}

/**
 * What is kept with an epoch. `known`: from before it. A part that the same machine does not show this time stays known; another
 * machine, which an operator has let in, takes the place of the first.
 */
export const hardwareFor = (
  epoch: number,
  shown: HardwareIdentity,
  known: HardwareIdentity | null,
): Pick<Node, 'reportedHardware'> => {
  const kept = mergedWith(keptOf(shown), known)
  return isBlank(kept) ? {} : { reportedHardware: { ...kept, epoch } }
}

const mergedWith = (shown: HardwareIdentity, known: HardwareIdentity | null): HardwareIdentity => {
  if (known === null || (!isBlank(shown) && isOtherMachine(known, shown))) return shown
  return {
    macs: shown.macs.length === 0 ? known.macs : shown.macs,
    bmcSerial: shown.bmcSerial ?? known.bmcSerial,
  }
}

/**
 * With a renewal: known from here on where nothing was known; else it follows the parts that are replaced one by one. Another machine
 * does not become the known one by renewing.
 */
export const hardwareAfterRenewal = (node: Node, shown: HardwareIdentity): Pick<Node, 'reportedHardware'> =>
  hasMoved(node, shown) ? {} : hardwareFor(node.epoch, shown, knownHardware(node))

const mostMacs = 16
const longestSerial = 128

/** A row holds a few addresses, and no serial number that many machines share. */
const keptOf = ({ macs, bmcSerial }: HardwareIdentity): HardwareIdentity => ({
  macs: macs.toSorted().slice(0, mostMacs),
  bmcSerial: bmcSerial === null || isPlaceholderSerial(bmcSerial) ? null : boundedText(bmcSerial, longestSerial),
})
