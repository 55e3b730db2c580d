// What an agent says of itself, for tests: evidence of a process and its machine, and reports.

import { failureClasses, type FailureClass } from '#domain/core/node.ts'
import type { AgentEvidence } from '#wire/core/agent-evidence.ts'
import type { ReportBody } from '#wire/node/report.ts'

const none = Object.fromEntries(failureClasses.map((name) => [name, 0])) as Record<FailureClass, number>

/** An instance is 22 characters; tests name theirs in fewer. */
export const instanceOf = (name: string): string => name.padEnd(22, '0')

export const evidenceOf = (name: string, changes: Partial<AgentEvidence> = {}): AgentEvidence => ({
  instance: instanceOf(name),
  hardware: { macs: ['02:00:00:00:00:01'], bmc_serial: 'BMC-1' },
  machine: null,
  agent_version: 'test',
  ...changes,
})

export const reportOf = (name: string, number: number, changes: Partial<ReportBody> = {}): ReportBody => ({
  instance: instanceOf(name),
  number,
  at: '2030-01-01T12:00:00.000Z',
  source: 'plane',
  certificate: { serial: 'a1', not_after: '2030-01-02T12:00:00.000Z' },
  clock_skew_ms: 0,
  endpoint_set: { id: 'runtime', revision: 7, drift_total: 0 },
  last_exchange: null,
  renewal: { attempts: 0, failures: none, last_attempt: null, last_failure: null },
  recovery: { attempts: none, successes: 0, failures: none, last_attempt: null, last_failure: null },
  rehearsal: null,
  storage: {
    identity_writable: true,
    diagnostics_writable: true,
    reserve: true,
    errno: null,
    free_bytes: { identity: 1, diagnostic: 2, retry: 3, runtime: 4 },
    diagnostic_write_failures: {},
    dropped_records: [],
  },
  conditions: [],
  story: [],
  ...changes,
})
