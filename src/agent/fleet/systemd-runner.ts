// Services as transient units of systemd, which outlive the agent. Their description holds what they were started as, so that a
// restarted agent does not touch a service that is still right. They have no more rights than the agent.

import { createHash } from 'node:crypto'
import * as path from 'node:path'
import { writeEnvironmentFile } from '#platform/environment-file.ts'
import { makeFolder, processOwner, removeFile } from '#platform/files.ts'
import { pathExists } from '#platform/paths.ts'
import { runProgram } from '#platform/run-program.ts'
import { overlayFolder } from './apply-files.ts'
import { lastLines, mostLines } from './last-lines.ts'
import { failsAfter, type RunningService, type ServiceRunner, type ServiceState } from './service-runner.ts'
import { isStartedAs, type WantedService } from './wanted-services.ts'

/** Stopping takes up to 10 s of a service's own. */
const callWithinMs = 30_000
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

  const units = async (): Promise<readonly Unit[]> => {
    const shown = await called('systemctl', ['show', `--property=${properties.join(',')}`, `${prefix}*.service`])
    return unitsIn(shown, prefix).filter(({ name }) => name !== question)
  }
  /** Who may not read the journal of the machine says nothing of it. */
  const written = async (name: string): Promise<readonly string[]> => {
    const args = ['--quiet', '--no-pager', '--output=cat', `--lines=${mostLines}`, `--unit=${unitOf(name)}`]
    const ran = await runProgram('journalctl', args, { withinMs: probeWithinMs, input: null })
    return ran.kind === 'done' ? lastLines(ran.stdout) : []
  }
  // Beside the overlay and not in it: the services see that.
  const environmentFileOf = (name: string): string => path.join(stateFolder, 'environment', `${name}.env`)
  const writeEnvironment = ({ name, terms }: WantedService): void => {
    if (Object.keys(terms.environment).length === 0) return
    makeFolder(path.join(stateFolder, 'environment'), 0o700)
    writeEnvironmentFile(environmentFileOf(name), terms.environment)
  }
  const dropEnvironment = (name: string): void => {
    if (pathExists(environmentFileOf(name))) removeFile(environmentFileOf(name))
  }
  const stop = async (names: readonly string[]): Promise<void> => {
    if (names.length === 0) return
    const units = names.map(unitOf)
    await called('systemctl', ['--no-ask-password', 'stop', ...units], /not loaded|not found/i)
    // A unit that has failed keeps its name.
    await called('systemctl', ['--no-ask-password', 'reset-failed', ...units], /not loaded|not found/i)
    names.forEach(dropEnvironment)
  }
  return {
    kind: 'systemd',
    lookEveryMs: 5_000,
    services: async () =>
      Promise.all(
        (await units()).map(async (unit) =>
          unit.state === 'failed' ? { ...unit, output: await written(unit.name) } : unit,
        ),
      ),
    stop,
    ensure: async (service, env) => {
      const before = (await units()).find(({ name }) => name === service.name)
      const rests = before?.isUp === false && service.terms.restart === 'never'
      if (before !== undefined && isStartedAs(before.digest, service) && (before.isUp || rests)) return 'kept'
      if (before !== undefined) await stop([service.name])
      writeEnvironment(service)
      try {
        await called(
          'systemd-run',
          startArguments(unitOf(service.name), service, env, stateFolder, environmentFileOf(service.name)),
        )
      } catch (error) {
        dropEnvironment(service.name)
        throw error
      }
      return 'started'
    },
    close: () => Promise.resolve(),
  }
}

/** Pure but for who we are. */
const startArguments = (
  unit: string,
  service: WantedService,
  env: Readonly<Record<string, string>>,
  stateFolder: string,
  environmentFile: string,
): readonly string[] => [
  '--quiet',
  '--no-ask-password',
  // One that may end is kept, so that it can be seen how.
  ...(service.terms.restart === 'always' ? ['--collect'] : ['--property=RemainAfterExit=yes']),
  `--unit=${unit}`,
  `--description=Muster service ${service.name} ${service.digest}`,
  ...(service.terms.user === null ? asUser() : [`--uid=${service.terms.user}`]),
  '--service-type=exec',
  `--property=Restart=${restarts[service.terms.restart]}`,
  // Slow enough for systemd's own limit of five starts in ten seconds never to end it.
  '--property=RestartSec=3s',
  '--property=TimeoutStopSec=10s',
  // The service runs as the agent's user and must not read its keys. The whole folder is hidden and not single files: a mount
  // over a file ends with the first rename that replaces the file.
  `--property=TemporaryFileSystem=${stateFolder}:ro`,
  `--property=BindReadOnlyPaths=-${overlayFolder(stateFolder)}`,
  `--working-directory=${service.terms.workingDirectory}`,
  ...limitsOf(service.terms),
  ...Object.entries(env).map(([name, value]) => `--setenv=${name}=${value}`),
  // What the vCluster sets may be secret; it goes before what is set above.
  ...(Object.keys(service.terms.environment).length === 0 ? [] : [`--property=EnvironmentFile=${environmentFile}`]),
  '--',
  // systemd replaces $NAME in commands; a child of ours would get it as it is.
  ...service.command.map((word) => word.replaceAll('$', '$$$$')),
]

const restarts = { always: 'always', 'on-failure': 'on-failure', never: 'no' } as const

const limitsOf = ({ memoryBytes, cpus, openFiles }: WantedService['terms']): readonly string[] => [
  ...(memoryBytes === null ? [] : [`--property=MemoryMax=${memoryBytes}`]),
  ...(cpus === null ? [] : [`--property=CPUQuota=${Math.round(cpus * 100)}%`]),
  ...(openFiles === null ? [] : [`--property=LimitNOFILE=${openFiles}`]),
]

const asUser = (): readonly string[] => {
  const { uid, gid } = processOwner()
  return [`--uid=${uid}`, `--gid=${gid}`]
}

/** Two agents on one machine have two folders, and keep out of each other's way. */
export const prefixOf = (stateFolder: string): string =>
  `muster-${createHash('sha256').update(stateFolder).digest('hex').slice(0, 8)}-`

const called = async (program: string, args: readonly string[], harmless?: RegExp): Promise<string> => {
  const ran = await runProgram(program, args, { withinMs: callWithinMs, input: null })
  if (ran.kind === 'done') return ran.stdout
  const why = ran.kind === 'failed' ? ran.why : 'is not installed'
  if (harmless?.test(why) !== true) throw new Error(`${program}: ${why}`)
  return ''
}

const properties = [
  ...['Id', 'Description', 'LoadState', 'ActiveState', 'SubState', 'NRestarts', 'MainPID'],
  ...['Result', 'ExecMainStatus'],
] as const

/** `isUp`: systemd runs it, or is about to restart it; false after it was stopped. */
export type Unit = RunningService & { readonly isUp: boolean }

/** Pure: what `systemctl show` prints, a paragraph a unit. */
export const unitsIn = (shown: string, prefix: string): readonly Unit[] =>
  shown.split(/\n\n+/).flatMap((paragraph) => {
    const said = new Map(
      paragraph.split('\n').flatMap((line) => {
        const at = line.indexOf('=')
        return at === -1 ? [] : [[line.slice(0, at), line.slice(at + 1)] as const]
      }),
    )
    const id = said.get('Id') ?? ''
    if (!id.startsWith(prefix) || !id.endsWith('.service') || said.get('LoadState') === 'not-found') return []
    const restarts = Number(said.get('NRestarts') ?? 0) || 0
    const active = said.get('ActiveState') ?? ''
    const state = said.get('SubState') === 'exited' ? 'ended' : stateOf(active, restarts)
    return [
      {
        name: id.slice(prefix.length, -'.service'.length),
        digest: /([0-9a-f]{16})$/.exec(said.get('Description') ?? '')?.[1] ?? '',
        state,
        restarts,
        pid: Number(said.get('MainPID') ?? 0) || null,
        error: state === 'failed' ? errorOf(said.get('Result') ?? '', said.get('ExecMainStatus') ?? '') : null,
        output: [],
        unapplied: [],
        isUp: ['active', 'activating', 'reloading'].includes(active),
      },
    ]
  })

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

/** `Result` is systemd's word for what became of it: exit-code, signal, oom-kill, ... */
const errorOf = (result: string, status: string): string => {
  if (result === 'exit-code') return `ended with exit code ${status}`
  return result === '' || result === 'success'
    ? 'not running'
    : `systemd says ${result}${status === '' ? '' : ` (${status})`}`
}
