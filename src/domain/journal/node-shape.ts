// A node's row as a plane reads it. A row that lost a field, or never was a node's, harms no other node: a stand-in is read in its
// place, which is shut out, keeps what can be read, and says what cannot. Only a quarantine or a revocation ends it.

import { slotOf, type CertificateRow } from '#domain/core/certificate.ts'
import { nothingTagged } from '#domain/core/hardware-profile.ts'
import type { JournalEntry } from '#domain/core/journal-entry.ts'
import {
  assurances,
  noHardware,
  type Membership,
  type Node,
  type NodeId,
  type Slot,
  type Slots,
} from '#domain/core/node.ts'
import { standingRevocation } from './rows-and-journal.ts'

type Fields = { readonly [name: string]: unknown }
type Field = keyof Omit<Node, 'unreadable'>

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isText = (value: unknown): value is string => typeof value === 'string'
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0
/** A date can be made of it, and nothing more is checked: a stricter check could shut a healthy node out. */
const isTime = (value: unknown): value is number => typeof value === 'number' && Math.abs(value) <= 8.64e15
const isObjectOrNull = (value: unknown): boolean => value === null || isObject(value)
const isTextOrNull = (value: unknown): boolean => value === null || isText(value)
/** A release before may not have written it. */
const isObjectOrLeftOut = (value: unknown): boolean => value === undefined || isObjectOrNull(value)
const isListOf = (value: unknown, fit: (element: unknown) => boolean): boolean =>
  Array.isArray(value) && value.every(fit)

const isCondition = (value: unknown): boolean =>
  isObject(value) &&
  isText(value['name']) &&
  isText(value['reason']) &&
  isTime(value['sinceMs']) &&
  isObjectOrLeftOut(value['evidence'])
const isApproval = (value: unknown): boolean => isObject(value) && isText(value['by']) && isTime(value['atMs'])
const isResource = (value: unknown): boolean => isObject(value) && isText(value['name']) && isText(value['state'])

const isHardware = (value: unknown): value is Fields =>
  isObject(value) && isListOf(value['macs'], isText) && isTextOrNull(value['bmcSerial'])

const isMachine = (value: unknown): boolean =>
  isObject(value) &&
  isListOf(value['tags'], isText) &&
  isListOf(value['slots'], isResource) &&
  isObjectOrLeftOut(value['readiness'])

const isCredential = (value: unknown): boolean =>
  isObject(value) &&
  (value['kind'] === 'key'
    ? isText(value['spki']) && isText(value['publicKey'])
    : value['kind'] === 'bearer' && isText(value['hash']))

const isRecovery = (value: unknown): boolean =>
  isObject(value) &&
  isCredential(value['credential']) &&
  isListOf(value['recoveredAtMs'], isTime) &&
  ((value['denied'] ?? null) === null || isApproval(value['denied']))

const isEvidence = (value: unknown): boolean => isObject(value) && isListOf(value['checks'], isObject)

const isRepair = (value: unknown): boolean =>
  isObject(value) &&
  isText(value['hash']) &&
  isTime(value['expiresAtMs']) &&
  isObjectOrLeftOut(value['usedBy']) &&
  ((value['evidence'] ?? null) === null || isEvidence(value['evidence']))

const isWireguard = (value: unknown): boolean =>
  isObject(value) && isText(value['publicKey']) && isText(value['address']) && isObjectOrLeftOut(value['endpoint'])

const isRehearsal = (value: unknown): boolean => isObject(value) && isText(value['outcome']) && isTime(value['sinceMs'])

const isSlot = (value: unknown): value is Slot =>
  isObject(value) &&
  isText(value['issuer']) &&
  isText(value['serial']) &&
  isText(value['spki']) &&
  isText(value['sha256']) &&
  isTime(value['issuedAtMs']) &&
  isTime(value['notAfterMs'])

const isRetired = (value: unknown): boolean => isObject(value) && isSlot(value['slot']) && isTime(value['untilMs'])

const isSlots = (value: unknown): value is Slots =>
  isObject(value) &&
  isSlot(value['current']) &&
  (value['pending'] === null || isSlot(value['pending'])) &&
  (value['retired'] === null || isRetired(value['retired']))

const isMembership = (value: unknown): value is Membership => {
  if (!isObject(value) || !isTime(value['sinceMs'])) return false
  const { slots } = value
  const explained = isText(value['reason']) && isText(value['by'])
  switch (value['kind']) {
    case 'registered':
      return true
    case 'enrolled':
    case 'active':
      return isSlots(slots)
    case 'inactive':
      return slots === null || isSlots(slots)
    case 'quarantined':
      return explained && (slots === null || isSlots(slots))
    case 'revoked':
      return explained
    default:
      return false
  }
}

/** Every decode of a node asks all of them: nothing here goes deeper than what a reader takes for granted. */
const fits: { readonly [F in Field]: (value: unknown) => boolean } = {
  id: isText,
  profile: isText,
  membership: isMembership,
  epoch: isCount,
  tenure: isCount,
  assignment: isTextOrNull,
  drain: (value) => value === 'none' || value === 'draining' || value === 'drained',
  allocations: isCount,
  wireguard: (value) => value === null || isWireguard(value),
  machine: isMachine,
  hardware: isHardware,
  reportedHardware: (value) => value === undefined || (isHardware(value) && isCount(value['epoch'])),
  facts: isObjectOrNull,
  assurance: (value) => (assurances as readonly unknown[]).includes(value),
  conditions: (value) => isListOf(value, isCondition),
  approvals: (value) => isListOf(value, isApproval),
  counter: isCount,
  recovery: (value) => value === null || isRecovery(value),
  repair: (value) => value === null || isRepair(value),
  rehearsal: (value) => value === null || isRehearsal(value),
  scrapeAddress: (value) => value === null || isText(value),
  provisioning: (value) => value === null || (isObject(value) && isText(value['state']) && isTime(value['sinceMs'])),
  registeredAtMs: isTime,
  registeredBy: isText,
}
const everyFit = Object.entries(fits)

/** `parsed`: what its document holds, undefined where that is no JSON. `id`: the key of the row. */
export const nodeAsRead = (id: NodeId, parsed: unknown): Node => {
  const fields: Fields = isObject(parsed) ? parsed : {}
  if (fields['id'] === id && fields['unreadable'] === undefined) {
    let whole = true
    for (const [name, fit] of everyFit) whole &&= fit(fields[name])
    if (whole) return fields as unknown as Node
  }
  // Nothing of another node is this one's: not its epoch, its recovery, nor its hardware.
  return standIn(id, fields['id'] === id ? fields : {}, faultIn(id, parsed))
}

const faultIn = (id: NodeId, parsed: unknown): string => {
  if (!isObject(parsed)) return 'it holds no JSON object'
  if (isText(parsed['unreadable'])) return parsed['unreadable']
  const unfit = everyFit.flatMap(([name, fit]) => (fit(parsed[name]) ? [] : [name]))
  return unfit.length > 0 ? `no good ${unfit.join(', ')}` : `it is the row of another node, under the key ${id}`
}

const standIn = (id: NodeId, fields: Fields, fault: string): Node => {
  const kept = Object.fromEntries(everyFit.flatMap(([name, fit]) => (fit(fields[name]) ? [[name, fields[name]]] : [])))
  const membership = isObject(fields['membership']) ? fields['membership'] : {}
  const sinceMs = [membership['sinceMs'], fields['registeredAtMs']].find(isTime) ?? 0
  return {
    ...blank,
    ...(kept as Partial<Node>),
    id,
    membership: {
      kind: 'quarantined',
      sinceMs,
      reason: `its row cannot be read: ${fault}`,
      by: 'system:store',
      slots: null,
    },
    unreadable: fault,
  }
}

const blank: Omit<Node, 'id' | 'membership'> = {
  profile: '',
  epoch: 0,
  tenure: 0,
  assignment: null,
  drain: 'none',
  allocations: 0,
  wireguard: null,
  machine: nothingTagged,
  hardware: noHardware,
  facts: null,
  assurance: 'none',
  conditions: [],
  approvals: [],
  counter: 0,
  recovery: null,
  repair: null,
  rehearsal: null,
  provisioning: null,
  scrapeAddress: null,
  registeredAtMs: 0,
  registeredBy: 'unknown',
}

/**
 * What a withdrawal starts from: the epoch and the certificates in the store take the place of what the row lost. `entries`: the
 * newest of the node, and those that say its membership. One that the journal says was revoked stays shut out.
 */
export const withCertificates = (
  { unreadable: _gone, ...node }: Node,
  certificates: readonly CertificateRow[],
  entries: readonly JournalEntry[],
): Node => {
  const epochs = certificates.flatMap(({ subject }) => (subject.kind === 'node' ? [subject.epoch] : []))
  const epoch = Math.max(node.epoch, ...epochs, ...entries.map((entry) => entry.epoch ?? 0))
  const [current, pending, retired] = certificates
    .filter(({ subject }) => subject.kind === 'node' && subject.epoch === epoch)
    // The denial has to last as long as any of them.
    .toSorted((one, other) => other.notAfterMs - one.notAfterMs)
    .map(slotOf)
  const slots: Slots | null =
    current === undefined
      ? null
      : {
          current,
          pending: pending ?? null,
          retired: retired === undefined ? null : { slot: retired, untilMs: retired.notAfterMs },
        }
  const revokedBefore = standingRevocation(entries)
  const { membership } = node
  return revokedBefore !== null && membership.kind === 'quarantined'
    ? { ...node, epoch, membership: { ...membership, slots, revokedBefore } }
    : { ...node, epoch, membership: { kind: 'inactive', sinceMs: membership.sinceMs, slots } }
}
