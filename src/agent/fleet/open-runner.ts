// Who runs the services on this machine: found out before the first is started, and again when the helper's answer changes.

import type { AgentCore } from '#agent/core/agent-parts.ts'
import { pathExists } from '#platform/paths.ts'
import { overlayFolder } from './apply-files.ts'
import { openHelperRunner, type Helped, type HelperServices } from './helped-runner.ts'
import { readRunning } from './running-file.ts'
import type { ServiceRunner } from './service-runner.ts'
import { openSupervisor } from './supervised-runner.ts'
import { mayUseSystemd, openSystemdRunner } from './systemd-runner.ts'

const booted = '/run/systemd/system'

export type RunnerChoice = {
  /** Null: not chosen yet. */
  kind(): ServiceRunner['kind'] | null
  /** Null: nothing was run yet. */
  runner(): ServiceRunner | null
  /** Whether the helper's answer asks for another runner than the chosen one, or is the first since one was chosen without it. */
  isOutdated(): Promise<boolean>
  /**
   * Chooses, and opens the runner where it is needed. A runner that was chosen before ends its services first, so that none runs twice;
   * where it cannot, this throws and the former choice stays. Returns which it has ended.
   */
  choose(isNeeded: boolean): Promise<readonly string[]>
}

export const openRunnerChoice = (
  core: Pick<AgentCore, 'clock' | 'timers' | 'log'>,
  stateFolder: string,
  helped: () => Promise<Pick<Helped, 'isKnown' | 'services'>>,
): RunnerChoice => {
  let runner: ServiceRunner | null = null
  let kind: ServiceRunner['kind'] | null = null
  let hasAnswered = true

  const isOther = ({ isKnown, services }: Pick<Helped, 'isKnown' | 'services'>): boolean =>
    isKnown && kind !== null && (services !== null) !== (kind === 'helper')
  const leave = async (): Promise<readonly string[]> => {
    const ended = ((await runner?.services()) ?? []).map(({ name }) => name)
    await runner?.stop(ended)
    await runner?.close()
    core.log.info({ before: kind, ended }, 'the services of the overlay get another runner')
    runner = null
    kind = null
    return ended
  }
  return {
    kind: () => kind,
    runner: () => runner,
    // Without one, it was left and none could be chosen in its place.
    isOutdated: async () => {
      const now = await helped()
      return kind === null || isOther(now) || (now.isKnown && !hasAnswered)
    },
    choose: async (isNeeded) => {
      const now = await helped()
      hasAnswered = now.isKnown
      const ended = isOther(now) ? await leave() : []
      kind ??= await runnerKind(stateFolder, now.services)
      if (isNeeded) runner ??= await openRunner(core, kind, stateFolder, now.services)
      return ended
    },
  }
}

/** One that says no for a moment still runs what it was given before. */
const runnerKind = async (stateFolder: string, helper: HelperServices | null): Promise<ServiceRunner['kind']> => {
  if (helper !== null) return 'helper'
  if (!pathExists(booted)) return 'supervised'
  if (await mayUseSystemd(stateFolder)) return 'systemd'
  try {
    return (await openSystemdRunner(stateFolder).services()).length > 0 ? 'systemd' : 'supervised'
  } catch {
    return 'supervised'
  }
}

const openRunner = async (
  core: Pick<AgentCore, 'clock' | 'timers' | 'log'>,
  kind: ServiceRunner['kind'],
  stateFolder: string,
  helper: HelperServices | null,
): Promise<ServiceRunner> => {
  if (kind === 'supervised') return openSupervisor(core, stateFolder)
  // Of the time before it could be used: nothing must run twice.
  if (readRunning(overlayFolder(stateFolder)).length > 0) await openSupervisor(core, stateFolder).close()
  if (kind === 'systemd') return openSystemdRunner(stateFolder)
  // The helper has them: a second runner would start them twice.
  if (helper === null) throw new Error('muster-agent-helper does not answer')
  return openHelperRunner(helper, core.clock)
}
