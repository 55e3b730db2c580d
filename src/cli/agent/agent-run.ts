import type { AgentOptions } from '#agent/core/config.ts'
import { runAgent } from '#agent/main.ts'
import { openNudging } from '#agent/core/pause.ts'
import { agentExitCodes } from '#agent/core/outcome.ts'
import { openLog } from '#platform/log.ts'
import { onNudgeSignal, stopSignal } from '#platform/signals.ts'
import { openResolver } from '#platform/resolve-name.ts'
import { agentConfigOf } from './agent-options.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { Failure } from '#cli/kit/failure.ts'

/** Stays until it is told to stop, or the plane says no for good. */
export const agentRun = async (cli: Cli, options: GlobalOptions & AgentOptions): Promise<void> => {
  // First, so that Ctrl-C ends a process that waits for its standard input.
  const config = await agentConfigOf(cli, options)
  const signal = stopSignal()
  const log = openLog(config.logLevel, 'agent')
  const { clock, timers, random } = cli
  const nudging = openNudging()
  onNudgeSignal(nudging.fire)
  const reached = (): void => {}
  const outcome = await runAgent(config, {
    clock,
    timers,
    random,
    resolve: openResolver(timers),
    log,
    signal,
    reached,
    nudge: nudging.nudge,
  })
  if (outcome.kind === 'stopped') return
  const { code, text, next } = outcome.trouble
  throw new Failure({ exit: agentExitCodes[outcome.kind], code, sentence: text, next })
}
