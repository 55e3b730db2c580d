import type { AgentParts } from './agent-deps.ts'
import { pause } from './pause.ts'

/** Waits, or less when somebody wants everything tried now, or when the agent is stopped. */
export const nudgedPause = async (
  { timers, nudge, signal }: Pick<AgentParts, 'timers' | 'nudge' | 'signal'>,
  ms: number,
): Promise<void> => {
  const over = new AbortController()
  const either = AbortSignal.any([signal, over.signal])
  await Promise.race([pause(timers, ms, either), nudge.wait(either)])
  over.abort()
}
