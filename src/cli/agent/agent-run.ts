// `muster agent run`: its options as a configuration, or a failure that says which is wrong; then the agent.

import { readAgentConfig, type AgentConfig, type GivenAgentConfig } from '#agent/core/config.ts'
import type { AgentOptions } from '#agent/core/settings.ts'
import { runAgent } from '#agent/main.ts'
import { openNudging } from '#agent/core/pause.ts'
import { agentExitCodes } from '#agent/core/outcome.ts'
import { openLog } from '#platform/log.ts'
import { onNudgeSignal, stopSignal } from '#platform/signals.ts'
import { openResolver } from '#platform/resolve-name.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { Failure, usageFailure } from '#cli/kit/failure.ts'
import { readFileIfAny } from '#platform/files.ts'
import { isStream } from '#platform/paths.ts'

export type AgentRunOptions = GlobalOptions &
  AgentOptions & { readonly config?: string; readonly checkConfig?: boolean }

/** Runs until it is stopped, or until the plane refuses for good. */
export const agentRun = async (cli: Cli, options: AgentRunOptions): Promise<void> => {
  if (options.checkConfig === true) {
    const { checkAgent } = await import('./agent-check.ts')
    return checkAgent(cli, options, await givenConfigOf(cli, options))
  }
  // First, so that Ctrl-C ends a process that waits for its standard input.
  const { config, file } = await usableConfigOf(cli, options)
  const signal = stopSignal()
  const log = openLog(config, 'agent')
  if (file !== null) log.info({ file }, 'settings were read from a file')
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

const longestJoin = 4096

type UsableConfig = { readonly config: AgentConfig; readonly file: string | null }

const usableConfigOf = async (cli: Cli, options: AgentRunOptions): Promise<UsableConfig> => {
  const { config, file, problems } = await givenConfigOf(cli, options)
  if (config === null) throw usageFailure(`${problems[0] ?? ''}.`, 'muster agent run --check-config')
  return { config, file: file?.file ?? null }
}

const givenConfigOf = (cli: Cli, options: AgentRunOptions): Promise<GivenAgentConfig> =>
  readAgentConfig(oncePerStream(options), cli.env, (place) =>
    place === '-' ? readOnce(cli, options.joinFile ?? '-') : Promise.resolve(readIfAllowed(place)),
  )

/** `--join-file <(muster token create ...)` is read like standard input: now, and not again when it is needed. */
const oncePerStream = (options: AgentRunOptions): AgentRunOptions =>
  options.joinFile !== undefined && isStream(options.joinFile) ? { ...options, joinFile: '-' } : options

const readOnce = (cli: Cli, place: string): Promise<string | null> => {
  if (place !== '-') return Promise.resolve(readIfAllowed(place))
  if (cli.input.isTerminal) cli.err.write('Paste the join string, then press Enter and Ctrl-D.\n')
  return cli.input.readAll(longestJoin)
}

/** One that may not be read is no trouble while there is an identity; enrolling says so then. */
const readIfAllowed = (file: string): string | null => {
  try {
    return readFileIfAny(file)
  } catch {
    return null
  }
}
