// How a node comes back when its certificate no longer works: automatically, after an approval, or not at all.

import { isoTime } from '#platform/clock.ts'
import { approvalComplete, recoveryApproved } from '#domain/core/approval.ts'
import { counted, durationWords } from '#domain/core/in-words.ts'
import type { Node, Repair } from '#domain/core/node.ts'
import type { Profile } from '#domain/core/profile.ts'
import { recoveriesInWindow } from '#domain/recovery/recovery.ts'
import { failedChecks } from '#domain/recovery/repair.ts'

export type RecoveryFacts = { readonly node: Node; readonly profile: Profile; readonly nowMs: number }

/** Goes on after "its certificate has expired". */
export const afterExpiry = (facts: RecoveryFacts): string => {
  const { node, profile, nowMs } = facts
  const { recovery } = node
  const approve = `muster node approve ${node.id}`
  if (recovery === null || profile.recovery.mode === 'deny') return `it has to join again: ${readmission(facts)}`
  if (recovery.denied !== null) return `${recovery.denied.by} said no to its recovery; to let it recover: ${approve}`
  if (recoveryApproved(node, profile)) return 'it recovers automatically when it reaches the plane; that is approved'
  if (profile.recovery.mode === 'approve') return `it recovers when people have approved it: ${approve}`
  if (recoveriesInWindow(node, profile, nowMs) >= profile.recovery.limit) {
    const { limit, windowMs } = profile.recovery
    const often = `${counted(limit, 'time')} in ${durationWords(windowMs)}`
    return `it has recovered ${often}, as often as profile ${profile.name} allows; to let it once more: ${approve}`
  }
  return 'it recovers automatically when it reaches the plane'
}

export const readmission = ({ node, profile }: RecoveryFacts): string => {
  if (!profile.join.allOf.includes('token'))
    return `its agent joins again by its ${profile.join.allOf.join(' and ')} identity`
  const approve = approvalComplete(node, profile) ? '' : `muster node approve ${node.id}, then `
  return `${approve}muster token create --node ${node.id}`
}

/** Said of a node that is well, too: it shows only when it is too late otherwise. */
export const denialSentences = ({ node }: RecoveryFacts): string[] => {
  const denied = node.recovery?.denied ?? null
  return denied === null
    ? []
    : [
        `It may not recover: ${denied.by} denied it at ${isoTime(denied.atMs)}. To allow it: muster node approve ${node.id}.`,
      ]
}

/** What becomes of a node in quarantine. */
export const repairSentences = ({ node, nowMs }: RecoveryFacts, isRepaired: boolean): string[] => {
  const { id, repair } = node
  const end = `to end it: muster node revoke ${id} --reason REASON`
  const bundle = `muster node repair-bundle ${id} --reason REASON --out FILE`
  if (repair === null || (!isRepaired && repair.usedBy === null && nowMs >= repair.expiresAtMs)) {
    const late =
      repair === null ? [] : [`The repair bundle ${repair.by} made expired at ${isoTime(repair.expiresAtMs)}.`]
    return [
      ...late,
      `Its certificates are withdrawn for good and it cannot join. To let it join anew: muster node release ${id}; to repair it under watch: ${bundle}; ${end}.`,
    ]
  }
  if (!isRepaired) {
    return [
      `Its certificates are withdrawn for good. ${repair.by} made a repair bundle for it, good until ${isoTime(repair.expiresAtMs)}: carry it to the machine and run muster agent repair --bundle-file FILE there; ${end}.`,
    ]
  }
  return [`It has been repaired, and its channel carries evidence only. ${evidenceWords(id, repair)}; ${end}.`]
}

const evidenceWords = (id: string, repair: Repair): string => {
  if (repair.evidence === null) return 'It has not shown its evidence yet; its agent does so automatically'
  if (repair.evidence.passed) return `Its evidence has passed. To let it back: muster node release ${id}`
  return `Its evidence has not passed (${failedChecks(repair).join('; ')}): put that right on the machine; its agent shows it again automatically`
}
