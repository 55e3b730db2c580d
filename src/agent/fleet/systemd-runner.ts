// Services as transient units of systemd, which outlive the agent. Their description holds what they were started as, so that a
// restarted agent does not touch a service that is still right. They have no more rights than the agent.

import { createHash } from 'node:crypto'
import * as path from 'node:path'
import { processOwner } from '#platform/files.ts'
import { runProgram } from '#platform/run-program.ts'
import {
  callSystemd,
  lastOfUnits,
  limitProperties,
  literalWords,
  openUnitEnvironments,
  restartProperty,
  showUnits,
  stopUnits,
  type ShownUnit,
} from '#platform/transient-units.ts'
import { overlayFolder } from './apply-files.ts'
import { lastLines, mostLines } from './last-lines.ts'
import { failsAfter, type RunningService, type ServiceRunner, type ServiceState } from './service-runner.ts'
import { isStartedAs, type WantedService } from './wanted-services.ts'

const probeWithinMs = 10_000

/** No service is called so. */
const question = '_may-i'

/** Whether systemd lets the agent start units: it is asked to start one. */
export const mayUseSystemd = async (stateFolder: string): Promise<boolean> => {
  const unit = `--unit=${prefixOf(stateFolder)}${question}.service`
  const asked = ['--quiet', '--no-ask-password', '--collect', '--wait', unit, ...asUser(), '--', 'true']
  return (await runProgram('systemd-run', asked, { withinMs: probeWithinMs, input: null })).kind === 'done'
}

export const openSystemdRunner = (stateFolder: string): ServiceRunner => {
  const prefix = prefixOf(stateFolder)
  const unitOf = (name: string): string => `${prefix}${name}.service`
  // Beside the overlay and not in it: the services see that.
  const environments = openUnitEnvironments(path.join(stateFolder, 'environment'), prefix)

  const units = async (): Promise<readonly Unit[]> =>
    (await showUnits(prefix)).filter(({ name }) => name !== question).map(unitFrom)
  const stop = async (names: readonly string[]): Promise<void> => {
    await stopUnits(names.map(unitOf))
    for (const name of names) environments.drop(unitOf(name))
  }
  let isSwept = false
  /** Of services that ended while no agent ran. What cannot be removed keeps none from starting: it is looked for again. */
  const sweep = (running: readonly Unit[]): void => {
    if (isSwept) return
    try {
      environments.keepOnly(running.map(({ name }) => unitOf(name)))
      isSwept = true
    } catch {
      // As above.
    }
  }
  return {
    kind: 'systemd',
    lookEveryMs: 5_000,
    services: async () => {
      const all = await units()
      sweep(all)
      const failed = all.filter(({ state }) => state === 'failed').map(({ name }) => unitOf(name))
      const written = await lastOfUnits(failed, mostLines)
      return all.map((unit) => ({ ...unit, output: lastLines(written.get(unitOf(unit.name)) ?? '') }))
    },
    stop,
    ensure: async (service, env) => {
      const running = await units()
      sweep(running)
      const before = running.find(({ name }) => name === service.name)
      const rests = before?.isUp === false && service.terms.restart === 'never'
      if (before !== undefined && isStartedAs(before.digest, service) && (before.isUp || rests)) return 'kept'
      if (before !== undefined) await stop([service.name])
      const unit = unitOf(service.name)
      const file = environments.write(unit, service.terms.environment)
      try {
        await callSystemd('systemd-run', startArguments(unit, service, env, stateFolder, file))
      } catch (error) {
        environments.drop(unit)
        throw error
      }
      return 'started'
    },
    close: () => Promise.resolve(),
  }
}

/** Reads only the ids of this process. */
const startArguments = (
  unit: string,
  service: WantedService,
  env: Readonly<Record<string, string>>,
  stateFolder: string,
  environmentFile: string | null,
): readonly string[] => [
  '--quiet',
  '--no-ask-password',
  // One that may end is kept, so that it can be seen how.
  ...(service.terms.restart === 'always' ? ['--collect'] : ['--property=RemainAfterExit=yes']),
  `--unit=${unit}`,
  `--description=Muster service ${service.name} ${service.digest}`,
  ...(service.terms.user === null ? asUser() : [`--uid=${service.terms.user}`]),
  '--service-type=exec',
  `--property=Restart=${restartProperty[service.terms.restart]}`,
  // Slow enough for systemd's own limit of five starts in ten seconds never to end it.
  '--property=RestartSec=3s',
  '--property=TimeoutStopSec=10s',
  // The service runs as the agent's user and must not read its keys. The whole folder is hidden and not single files: a mount
  // over a file ends with the first rename that replaces the file.
  `--property=TemporaryFileSystem=${stateFolder}:ro`,
  `--property=BindReadOnlyPaths=-${overlayFolder(stateFolder)}`,
  `--working-directory=${service.terms.workingDirectory}`,
  ...limitProperties(service.terms),
  ...Object.entries(env).map(([name, value]) => `--setenv=${name}=${value}`),
  // What the vCluster sets may be secret; it goes before what is set above.
  ...(environmentFile === null ? [] : [`--property=EnvironmentFile=${environmentFile}`]),
  '--',
  ...literalWords(service.command),
]

const asUser = (): readonly string[] => {
  const { uid, gid } = processOwner()
  return [`--uid=${uid}`, `--gid=${gid}`]
}

/** Two agents on one machine have two folders, and keep out of each other's way. */
export const prefixOf = (stateFolder: string): string =>
  `muster-${createHash('sha256').update(stateFolder).digest('hex').slice(0, 8)}-`

/** `isUp`: systemd runs it, or is about to restart it; false after it was stopped. */
export type Unit = RunningService & { readonly isUp: boolean }

export const unitFrom = ({ name, description, active, hasExited, restarts, pid, ...end }: ShownUnit): Unit => {
  const state = hasExited ? 'ended' : stateOf(active, restarts)
  return {
    name,
    digest: /([0-9a-f]{16})$/.exec(description)?.[1] ?? '',
    state,
    restarts,
    pid,
    error: state === 'failed' ? errorOf(end.result, end.exitStatus) : null,
    output: [],
    unapplied: [],
    isUp: ['active', 'activating', 'reloading'].includes(active),
  }
}

const stateOf = (active: string, restarts: number): ServiceState => {
  switch (active) {
    case 'active':
    case 'reloading':
      return 'running'
    case 'activating':
      return restarts < failsAfter ? 'starting' : 'failed'
    default:
      return 'failed'
  }
}

const errorOf = (result: string, status: string): string => {
  if (result === 'exit-code') return `ended with exit code ${status}`
  return result === '' || result === 'success'
    ? 'not running'
    : `systemd says ${result}${status === '' ? '' : ` (${status})`}`
}
