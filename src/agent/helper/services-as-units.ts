// Services of agent.toml as units of systemd, which outlive the helper. Their description holds what they were started as, so that
// a helper that was started anew knows them.

import * as path from 'node:path'
import { writeEnvironmentFile } from '#platform/environment-file.ts'
import { makeFolder, removeFile } from '#platform/files.ts'
import { namesIn } from '#platform/folder.ts'
import { runProgram } from '#platform/run-program.ts'
import { shownLine } from '#platform/user-process.ts'
import type { ServiceHost, ServiceOrder, StartedService } from './listed-services.ts'
import { literalWords } from './run-listed.ts'
import type { ServiceState } from './verbs.ts'

/** Made by the helper's unit. It stays when the helper ends: systemd reads a file in it with every start of its service. */
export const environmentFolder = '/run/muster-agent-helper-services'

const shownLines = 5
/** Stopping takes up to 10 s of a service's own. */
const callWithinMs = 30_000

/** `mark`: what tells the units of two helpers on one machine apart. `folder`: for environments, which may hold secrets. */
export const servicesAsUnits = (mark: string, folder: string): ServiceHost => {
  const prefix = `muster-helper-${mark}-`
  const unitOf = (name: string): string => `${prefix}${name}.service`
  const environmentFileOf = (name: string): string => path.join(folder, `${unitOf(name)}.env`)

  const units = async (): Promise<readonly Unit[]> => {
    const shown = await called('systemctl', ['show', `--property=${shownProperties.join(',')}`, `${prefix}*.service`])
    return unitsIn(shown, prefix)
  }
  const stop = async (name: string): Promise<void> => {
    await called('systemctl', ['--no-ask-password', 'stop', unitOf(name)], /not loaded|not found/i)
    // A unit that has failed keeps its name.
    await called('systemctl', ['--no-ask-password', 'reset-failed', unitOf(name)], /not loaded|not found/i)
    dropEnvironment(name)
  }
  const dropEnvironment = (name: string): void => {
    if (namesIn(folder).includes(path.basename(environmentFileOf(name)))) removeFile(environmentFileOf(name))
  }
  let swept: Promise<void> | null = null
  /** Of services that ended while no helper ran. Before the first start: a file is there before its unit. */
  const dropOldEnvironments = async (): Promise<void> => {
    const kept = new Set((await units()).map(({ name }) => path.basename(environmentFileOf(name))))
    for (const name of namesIn(folder))
      if (name.startsWith(prefix) && !kept.has(name)) removeFile(path.join(folder, name))
  }
  const begin = async (order: ServiceOrder): Promise<void> => {
    const file = Object.keys(order.env).length === 0 ? null : environmentFileOf(order.name)
    if (file !== null) {
      makeFolder(folder, 0o700)
      writeEnvironmentFile(file, order.env)
    }
    try {
      await called('systemd-run', startArguments(unitOf(order.name), order, file))
    } catch (error) {
      dropEnvironment(order.name)
      throw error
    }
  }
  return {
    stop,
    started: async () => (await units()).map(({ name, digest, listing }) => ({ name, digest, listing })),
    status: async () =>
      Promise.all(
        (await units()).map(async ({ listing: _listing, isKept: _isKept, ...unit }) => ({
          ...unit,
          lines: unit.state === 'ended' || unit.restarts > 0 ? await linesOf(unitOf(unit.name)) : [],
        })),
      ),
    start: async (order) => {
      // What earlier services have left keeps none from starting: it is looked for again with the next.
      swept ??= dropOldEnvironments().catch(() => void (swept = null))
      await swept
      const before = (await units()).find(({ name }) => name === order.name)
      const isSame = before?.digest === order.digest && before.listing === order.listing
      if (isSame && (before.isKept || order.restart === 'never')) return 'kept'
      if (before !== undefined) await stop(order.name)
      await begin(order)
      return 'started'
    },
    close: () => Promise.resolve(),
  }
}

const restartOf = { always: 'always', 'on-failure': 'on-failure', never: 'no' } as const

/** Pure. */
const startArguments = (unit: string, order: ServiceOrder, environmentFile: string | null): readonly string[] => [
  '--quiet',
  '--no-ask-password',
  `--unit=${unit}`,
  `--description=Muster service ${order.name} ${order.digest} ${order.listing}`,
  ...(order.user === null ? [] : [`--uid=${order.user.name}`, `--gid=${order.user.gid}`]),
  '--service-type=exec',
  `--property=Restart=${restartOf[order.restart]}`,
  // One that may end is kept, so that it can be seen how.
  ...(order.restart === 'always' ? [] : ['--property=RemainAfterExit=yes']),
  // Slow enough for systemd's own limit of five starts in ten seconds never to end it.
  '--property=RestartSec=3s',
  '--property=TimeoutStopSec=10s',
  '--property=NoNewPrivileges=yes',
  `--working-directory=${order.cwd}`,
  ...(environmentFile === null ? [] : [`--property=EnvironmentFile=${environmentFile}`]),
  '--',
  ...literalWords(order.command),
]

const shownProperties = [
  ...['Id', 'Description', 'LoadState', 'ActiveState', 'SubState', 'NRestarts', 'MainPID'],
  ...['Result', 'ExecMainStatus'],
]

/** `isKept`: it runs, is about to be started again, or has ended and is to be left so. */
type Unit = ServiceState & StartedService & { readonly isKept: boolean }

/** Pure: what `systemctl show` prints, a paragraph a unit. */
const unitsIn = (shown: string, prefix: string): readonly Unit[] =>
  shown.split(/\n\n+/).flatMap((paragraph) => {
    const said = new Map(
      paragraph.split('\n').flatMap((line) => {
        const at = line.indexOf('=')
        return at === -1 ? [] : [[line.slice(0, at), line.slice(at + 1)] as const]
      }),
    )
    const id = said.get('Id') ?? ''
    if (!id.startsWith(prefix) || said.get('LoadState') === 'not-found') return []
    const active = said.get('ActiveState') ?? ''
    const isUp = ['active', 'reloading'].includes(active) && said.get('SubState') !== 'exited'
    const result = said.get('Result') ?? ''
    const [, digest = '', listing = ''] = /([0-9a-f]{8,64}) ([0-9a-f]{16})$/.exec(said.get('Description') ?? '') ?? []
    return [
      {
        name: id.slice(prefix.length, -'.service'.length),
        digest,
        listing,
        isKept: ['active', 'activating', 'reloading'].includes(active),
        state: isUp ? 'running' : 'ended',
        restarts: Number(said.get('NRestarts') ?? 0) || 0,
        pid: Number(said.get('MainPID') ?? 0) || null,
        ended: isUp ? null : `${result || 'ended'}, exit code ${said.get('ExecMainStatus') ?? '?'}`,
        lines: [],
      },
    ]
  })

const linesOf = async (unit: string): Promise<string[]> => {
  const asked = ['--no-pager', '--output=cat', `--lines=${shownLines}`, `--unit=${unit}`]
  const ran = await runProgram('journalctl', asked, { withinMs: callWithinMs, input: null })
  return ran.kind === 'done'
    ? ran.stdout
        .split('\n')
        .filter((line) => line !== '')
        .map(shownLine)
    : []
}

const called = async (program: string, args: readonly string[], harmless?: RegExp): Promise<string> => {
  const ran = await runProgram(program, args, { withinMs: callWithinMs, input: null })
  if (ran.kind === 'done') return ran.stdout
  const why = ran.kind === 'failed' ? ran.why : 'is not installed'
  if (harmless?.test(why) !== true) throw new Error(`${program}: ${why}`)
  return ''
}
