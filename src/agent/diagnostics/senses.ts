// What the agent has for telling how it is: its disk, its figures, its status and record, and a log that stays small.

import { coalesced } from '#platform/coalesced-log.ts'
import type { Log } from '#platform/log.ts'
import type { AgentDeps, AgentParts } from '#agent/core/agent-deps.ts'
import type { AgentConfig } from '#agent/core/config.ts'
import type { AgentOutcome } from '#agent/core/outcome.ts'
import { openStatusBoard } from './status-board.ts'
import { openStorage } from '#agent/state/storage.ts'
import { openVitals } from '#agent/core/vitals.ts'

export type Senses = Pick<AgentParts, 'board' | 'vitals' | 'storage' | 'log'>

type SensesDeps = Pick<AgentDeps, 'clock' | 'timers' | 'log'>

export const openSenses = (
  config: Pick<AgentConfig, 'stateFolder' | 'keyStorage'>,
  deps: SensesDeps,
): { readonly senses: Senses; close(outcome: AgentOutcome): void } => {
  const { clock, timers } = deps
  const vitals = openVitals(clock)
  const storage = openStorage({ clock, vitals }, config.stateFolder, config.keyStorage === 'file')
  const { log, flush } = coalesced(deps.log, {
    clock,
    timers,
    quiet: storage.pressure,
    dropped: (reason) => vitals.dropped('log', reason, 1),
  })
  const board = openStatusBoard({ clock, timers, log, vitals, storage }, config.stateFolder)
  return {
    senses: { board, vitals, storage, log },
    close: (outcome) => {
      board.close(outcome)
      sayHowItEnded(log, outcome)
      flush()
    },
  }
}

const sayHowItEnded = (log: Log, outcome: AgentOutcome): void => {
  if (outcome.kind === 'stopped') return log.info('stopped')
  const { code, next, text } = outcome.trouble
  log.error({ outcome: outcome.kind, code, next }, text)
}
