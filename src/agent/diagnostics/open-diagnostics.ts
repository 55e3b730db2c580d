// The parts of the agent's diagnostics: its disk, its record in memory and on that disk, and a bounded log.

import { coalesced } from '#platform/coalesced-log.ts'
import type { Log } from '#platform/log.ts'
import type { AgentCore } from '#agent/core/agent-parts.ts'
import type { AgentConfig } from '#agent/core/config.ts'
import type { AgentOutcome } from '#agent/core/outcome.ts'
import { openStorage, type AgentStorage } from '#agent/state/storage.ts'
import type { RecordedEvent } from './events.ts'
import { openRecord, type AgentRecord } from './record.ts'
import { keepRecordFiles, readRecord } from './record-files.ts'

export type Diagnostics = {
  readonly record: AgentRecord
  readonly storage: AgentStorage
  readonly log: Log
  /** Records and logs how the agent ended, and writes what is not written yet. */
  close(outcome: AgentOutcome): void
}

export const openDiagnostics = (
  core: Pick<AgentCore, 'clock' | 'timers' | 'log'>,
  { stateFolder, keyStorage }: Pick<AgentConfig, 'stateFolder' | 'keyStorage'>,
): Diagnostics => {
  const { clock, timers } = core
  const writeFailed = (errno: string): void => record.count({ kind: 'diagnostic-write-failed', errno })
  const storage = openStorage(clock, stateFolder, keyStorage === 'file', writeFailed)
  const record: AgentRecord = openRecord(clock, storage, eventsIn(stateFolder))
  const { log, flush } = coalesced(
    core,
    {
      quiet: storage.pressure,
      dropped: (reason) => record.count({ kind: 'dropped', source: 'log', reason, count: 1 }),
    },
    subjects,
  )
  const files = keepRecordFiles({ clock, timers, log }, stateFolder, record, storage)
  record.changed('agent', 'started', 'The agent was started.')
  return {
    record,
    storage,
    log,
    close: (outcome) => {
      record.end(outcome)
      files.close()
      sayHowItEnded(log, outcome)
      flush()
    },
  }
}

/** What fails beside another of its kind has a line of its own: outputs, services, what they failed with. */
const subjects = ['what', 'output', 'service', 'check', 'failure', 'task'] as const

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
