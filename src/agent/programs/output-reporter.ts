// Reports how the outputs stand, to the status file and to the plane: each change, and everything to every new channel.

import type { AgentParts } from '#agent/core/agent-parts.ts'
import type { StatusFile } from '#agent/diagnostics/status-file.ts'
import type { OutputsStateBody } from '#wire/programs/programs-api.ts'

/** The channel in use. */
export type OutputsSender = {
  /** Whether its plane has leaves for programs. */
  takesOutputs(): boolean
  /** Only sent to a plane that takes it. */
  outputsState(body: OutputsStateBody): void
}

export type OutputState = NonNullable<StatusFile['outputs']>[number]

export type OutputReporter = {
  use(sender: OutputsSender | null): void
  /** `hasHad`: this node had outputs before, so that the plane has to learn that there are none any more. */
  report(states: readonly OutputState[], hasHad: boolean): void
}

export const openOutputReporter = (record: Pick<AgentParts['record'], 'facts'>): OutputReporter => {
  let sender: OutputsSender | null = null
  let said = ''
  let shown = '[]'
  return {
    use: (next) => {
      sender = next
      said = ''
    },
    report: (states, hasHad) => {
      const text = JSON.stringify(states)
      if (text !== shown) record.facts({ outputs: [...states] })
      shown = text
      const body = { outputs: states.map(({ name, place, serial, failure }) => ({ name, place, serial, failure })) }
      const frame = JSON.stringify(body)
      if (sender === null || frame === said || (states.length === 0 && !hasHad)) return
      said = frame
      sender.outputsState(body)
    },
  }
}
