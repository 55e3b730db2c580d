// The parts of the agent's diagnostics: its disk, its record in memory and on that disk, and a bounded log.

import { coalesced } from '#platform/coalesced-log.ts'
import type { Log } from '#platform/log.ts'
import type { AgentDeps, AgentParts } from '#agent/core/agent-deps.ts'
import type { AgentConfig } from '#agent/core/config.ts'
import type { AgentOutcome } from '#agent/core/outcome.ts'
import { openStorage } from '#agent/state/storage.ts'
import type { RecordedEvent } from './events.ts'
import { openRecord, type AgentRecord } from './record.ts'
import { keepRecordFiles, readRecord } from './record-files.ts'

export type Diagnostics = Pick<AgentParts, 'record' | 'storage' | 'log'>

export const openDiagnostics = (
  { stateFolder, keyStorage }: Pick<AgentConfig, 'stateFolder' | 'keyStorage'>,
  deps: Pick<AgentDeps, 'clock' | 'timers' | 'log'>,
): { readonly diagnostics: Diagnostics; close(outcome: AgentOutcome): void } => {
  const { clock, timers } = deps
  const writeFailed = (errno: string): void => record.count({ kind: 'diagnostic-write-failed', errno })
  const storage = openStorage({ clock, writeFailed }, stateFolder, keyStorage === 'file')
  const record: AgentRecord = openRecord({ clock, storage }, eventsIn(stateFolder))
  const { log, flush } = coalesced(deps, {
    quiet: storage.pressure,
    dropped: (reason) => record.count({ kind: 'dropped', source: 'log', reason, count: 1 }),
  })
  const files = keepRecordFiles({ clock, timers, log, record, storage }, stateFolder)
  record.changed('agent', 'started', 'The agent was started.')
  return {
    diagnostics: { record, storage, log },
    close: (outcome) => {
      record.end(outcome)
      files.close()
      sayHowItEnded(log, outcome)
      flush()
    },
  }
}

const eventsIn = (stateFolder: string): readonly RecordedEvent[] => {
  try {
    return readRecord(stateFolder)
  } catch {
    return []
  }
}

const sayHowItEnded = (log: Log, outcome: AgentOutcome): void => {
  if (outcome.kind === 'stopped') return log.info('stopped')
  const { code, next, text } = outcome.trouble
  log.error({ outcome: outcome.kind, code, next }, text)
}
