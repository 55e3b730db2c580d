// What a person could do about a node now, as commands that exist. The most likely one first.

import { hasCondition } from '#domain/core/conditions.ts'
import type { Node } from '#domain/core/node.ts'
import { unavailableMethods, type Profile } from '#domain/core/profile.ts'
import { slotsOf } from '#domain/core/certificate.ts'

export const nextCommands = (node: Node, profile: Profile, nowMs: number): string[] => {
  const commands =
    node.unreadable === undefined ? [...byConditions(node, profile), ...byMembership(node, profile, nowMs)] : [revoke]
  return [...new Set(commands)].map((command) => `muster ${command.replace('ID', () => node.id)}`)
}

const repair = 'node repair-bundle ID --reason REASON --out FILE'
const revoke = 'node revoke ID --reason REASON'
const token = 'token create --node ID'

const byConditions = (node: Node, profile: Profile): string[] => {
  const replace = profile.join.allOf.includes('token') ? [`${token} --replace`] : []
  const has = (name: Parameters<typeof hasCondition>[1]): boolean => hasCondition(node, name)
  const settle = node.membership.kind === 'active' ? ['node settle ID --reason REASON'] : []
  const duplicate = has('duplicate_identity') && node.membership.kind !== 'quarantined'
  return [
    ...(has('needs_approval') ? ['node approve ID', 'node deny ID'] : []),
    ...(duplicate ? [repair, ...settle, 'node quarantine ID --reason REASON', revoke] : []),
    ...(has('spoof_suspected') ? ['node quarantine ID --reason REASON', ...replace, ...settle] : []),
  ]
}

const byMembership = (node: Node, profile: Profile, nowMs: number): string[] => {
  const { membership } = node
  const joinsByToken = profile.join.allOf.includes('token')
  switch (membership.kind) {
    case 'registered':
      return joinsByToken && unavailableMethods(profile).length === 0 ? [token] : []
    case 'enrolled':
      return hasCondition(node, 'stuck_enrollment') ? [...(joinsByToken ? [token] : []), revoke] : []
    case 'active':
    case 'inactive':
      return lostFor(node, nowMs) ? comeback(node, joinsByToken) : []
    case 'quarantined':
      return inQuarantine(node)
    case 'revoked':
      return [registerAnew(node), ...(joinsByToken && unavailableMethods(profile).length === 0 ? [token] : [])]
  }
}

const pasteable = /^[\w.:@/+-]+$/

/** A revoked node, as it was: its profile and hardware are not remembered by a new registration. */
const registerAnew = ({ profile, hardware }: Node): string =>
  [
    `node enroll ID --profile ${profile}`,
    ...hardware.macs.map((mac) => `--mac ${mac}`),
    ...(hardware.bmcSerial === null
      ? []
      : [`--bmc-serial ${pasteable.test(hardware.bmcSerial) ? hardware.bmcSerial : 'SERIAL'}`]),
  ].join(' ')

/** None of its certificates is valid any more. */
const lostFor = (node: Node, nowMs: number): boolean => {
  const slots = slotsOf(node)
  return slots === null || nowMs >= Math.max(slots.current.notAfterMs, slots.pending?.notAfterMs ?? 0)
}

const comeback = ({ recovery }: Node, joinsByToken: boolean): string[] => [
  ...(recovery !== null && recovery.denied !== null ? ['node approve ID'] : []),
  ...(joinsByToken ? [token] : []),
  repair,
]

const inQuarantine = ({ membership, repair: made }: Node): string[] => {
  if (membership.kind === 'quarantined' && membership.revokedBefore !== undefined) return [revoke, 'node release ID']
  const repaired = membership.kind === 'quarantined' && membership.slots !== null
  if (repaired) return made?.evidence?.passed === true ? ['node release ID', revoke] : ['node show ID', repair, revoke]
  return [repair, 'node release ID', revoke]
}
