// What the agent of a node reported about itself, and how far a repair has come.

import type { NodeEvidence, RepairView } from '#wire/node/node-evidence.ts'
import { moment } from '#cli/kit/moment.ts'

export const evidenceLines = (evidence: NodeEvidence, nowMs: number): string[] => {
  if (evidence.reported_at === null) return ['nothing yet']
  const at = (time: string | null): string => (time === null ? 'never' : moment(time, nowMs))
  return [
    moment(evidence.reported_at, nowMs),
    `certificate until ${evidence.cert_not_after ?? 'unknown'}, identity from ${evidence.identity_source}`,
    `last exchange ${at(evidence.last_exchange)}`,
    `renewal: last tried ${at(evidence.last_renewal_attempt)}${failure(evidence.last_renewal_failure)}`,
    `recovery: last tried ${at(evidence.last_recovery_attempt)}${failure(evidence.last_recovery_failure)}`,
    ...rehearsal(evidence, at),
    `clock ${skew(evidence.clock_skew_ms ?? 0)}`,
    ...(evidence.endpoint_set === null
      ? []
      : [`endpoint set ${evidence.endpoint_set.id}, revision ${evidence.endpoint_set.revision}`]),
    ...storage(evidence),
  ]
}

const failure = (last: NodeEvidence['last_renewal_failure']): string =>
  last === null ? '' : `; last failure ${last.at}: ${last.class} (${last.code}) ${last.text}`

const rehearsal = ({ last_rehearsal: last }: NodeEvidence, at: (time: string | null) => string): string[] => {
  if (last === null) return ['rehearsal: never']
  const where = last.outcome === 'failed' ? ` at ${last.step}: ${last.why}` : ''
  return [`rehearsal: ${last.outcome} ${at(last.at)}${where}`]
}

const skew = (ms: number): string =>
  ms === 0 ? 'right, within the tolerance' : `${Math.round(Math.abs(ms) / 1000)} s ${ms > 0 ? 'behind' : 'ahead'}`

const storage = ({ free_bytes: free, ...evidence }: NodeEvidence): string[] => [
  `identity ${writable(evidence.identity_writable)}, diagnostics ${writable(evidence.diagnostics_writable)}, reserve ${evidence.disk_reserve === true ? 'whole' : 'missing'}`,
  ...(free === null
    ? []
    : [
        `free: ${Object.entries(free)
          .map(([path, bytes]) => `${path} ${mebibytes(bytes)}`)
          .join(', ')}`,
      ]),
]

const writable = (is: boolean | null): string => (is === false ? 'cannot be written' : 'writable')
const mebibytes = (bytes: number): string => `${Math.floor(bytes / 2 ** 20)} MiB`

export const repairLines = (repair: RepairView, nowMs: number): string[] => [
  `bundle ${repair.id}, made ${moment(repair.issued_at, nowMs)} by ${repair.by}: ${repair.reason}`,
  repair.used_at === null ? `not used yet, good until ${repair.expires_at}` : `used ${moment(repair.used_at, nowMs)}`,
  ...(repair.evidence === null
    ? []
    : [
        `evidence ${repair.evidence.passed ? 'has passed' : 'has not passed'} (${repair.evidence.at})`,
        ...repair.evidence.checks.map(({ name, ok, detail }) => `  ${ok ? 'ok' : 'NOT ok'}  ${name}: ${detail}`),
      ]),
]
