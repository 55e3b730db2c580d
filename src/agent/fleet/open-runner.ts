// Who runs the services on this machine, found out once.

import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import { pathExists } from '#platform/paths.ts'
import type { Timers } from '#platform/timers.ts'
import { overlayFolder } from './apply-files.ts'
import { readRunning } from './running-file.ts'
import type { ServiceRunner } from './service-runner.ts'
import { openSupervisor } from './supervised-runner.ts'
import { mayUseSystemd, openSystemdRunner } from './systemd-runner.ts'

type RunnerDeps = { readonly clock: Clock; readonly timers: Timers; readonly log: Log }

const booted = '/run/systemd/system'

/** One that says no for a moment still runs what it was given before. */
export const runnerKind = async (stateFolder: string): Promise<ServiceRunner['kind']> => {
  if (!pathExists(booted)) return 'supervised'
  if (await mayUseSystemd(stateFolder)) return 'systemd'
  try {
    return (await openSystemdRunner(stateFolder).services()).length > 0 ? 'systemd' : 'supervised'
  } catch {
    return 'supervised'
  }
}

export const openRunner = async (
  kind: ServiceRunner['kind'],
  deps: RunnerDeps,
  stateFolder: string,
): Promise<ServiceRunner> => {
  if (kind === 'supervised') return openSupervisor(deps, stateFolder)
  // Of the time before it could be used: nothing must run twice.
  if (readRunning(overlayFolder(stateFolder)).length > 0) await openSupervisor(deps, stateFolder).close()
  return openSystemdRunner(stateFolder)
}
