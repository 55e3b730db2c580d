// Who runs the services on this machine, found out once.

import type { AgentCore } from '#agent/core/agent-parts.ts'
import { pathExists } from '#platform/paths.ts'
import { overlayFolder } from './apply-files.ts'
import { openHelperRunner, type HelperServices } from './helped-runner.ts'
import { readRunning } from './running-file.ts'
import type { ServiceRunner } from './service-runner.ts'
import { openSupervisor } from './supervised-runner.ts'
import { mayUseSystemd, openSystemdRunner } from './systemd-runner.ts'

const booted = '/run/systemd/system'

/** One that says no for a moment still runs what it was given before. */
export const runnerKind = async (
  stateFolder: string,
  helper: HelperServices | null,
): Promise<ServiceRunner['kind']> => {
  if (helper !== null) return 'helper'
  if (!pathExists(booted)) return 'supervised'
  if (await mayUseSystemd(stateFolder)) return 'systemd'
  try {
    return (await openSystemdRunner(stateFolder).services()).length > 0 ? 'systemd' : 'supervised'
  } catch {
    return 'supervised'
  }
}

export const openRunner = async (
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
