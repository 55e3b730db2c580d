// Which conditions the agent claims of its own node, from the trouble it is in. Pure.

import { reportedConditions } from '#domain/node/reported-conditions.ts'
import type { ReportBody } from '#wire/node/report.ts'
import type { StatusTrouble } from './status-file.ts'
import type { FreeBytes } from '#agent/state/storage.ts'
import { tidy } from '#agent/core/trouble.ts'

export type ReportedCondition = ReportBody['conditions'][number]

const longestReason = 256
const longestValue = 128
const mostEvidence = 8

/** One of each name: the trouble that has lasted longest. `pressedSince`: little room on the disk, or null. */
export const reportedOf = (
  troubles: readonly StatusTrouble[],
  pressedSince: string | null,
  free: FreeBytes,
): readonly ReportedCondition[] => {
  const claimed = [...troubles]
    .sort((a, b) => (a.since < b.since ? -1 : 1))
    .flatMap((what) => conditionOf(what) ?? [])
    .filter(({ name }, index, all) => all.findIndex((other) => other.name === name) === index)
  return pressedSince === null ? claimed : [...claimed, pressure(pressedSince, free)]
}

const conditionOf = (what: StatusTrouble): ReportedCondition | null => {
  const name = reportedConditions.find((condition) => condition === what.class)
  if (name === undefined) return null
  return {
    name,
    since: what.since,
    reason: what.text.slice(0, longestReason),
    evidence: boundedEvidence(what.evidence),
  }
}

const pressure = (since: string, free: FreeBytes): ReportedCondition => ({
  name: 'node_observability_disk_pressure',
  since,
  reason: 'Little room is left on the disk of the agent; it drops logs and records, and keeps its credentials.',
  evidence: { free_bytes: free.diagnostic },
})

/** What fits the schema of reports, whatever it came from. */
export const boundedEvidence = (evidence: StatusTrouble['evidence']): ReportedCondition['evidence'] =>
  Object.fromEntries(
    Object.entries(evidence ?? {})
      .filter(([name]) => /^[a-z0-9_]{1,40}$/.test(name))
      .slice(0, mostEvidence)
      .map(([name, value]) => [name, boundedValue(value)]),
  )

const boundedValue = (value: string | number | null): string | number | null => {
  if (typeof value === 'string') return tidy(value, longestValue)
  return typeof value === 'number' && !Number.isFinite(value) ? null : value
}
