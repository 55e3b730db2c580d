// The services that agent.toml lists, run as users of their own: as units where systemd runs, which outlive the helper, else as its
// children, which end with it.

import { runProgram } from '#platform/run-program.ts'
import type { SystemUser } from '#platform/system-users.ts'
import type { Cancel, Timers } from '#platform/timers.ts'
import { shownLine, startUserProcess, type UserProcess } from '#platform/user-process.ts'
import { environmentOf, literalWords, settingOf, type RunsAs } from './run-listed.ts'
import type { RequestOf, ServiceState } from './verbs.ts'

/** What agent.toml and the agent together have made of it. */
export type ServiceOrder = Pick<RequestOf<'service.start'>, 'name' | 'digest' | 'restart'> & {
  readonly command: readonly string[]
  /** Null: the user of the helper, where it was started by hand. */
  readonly user: SystemUser | null
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
}

/** Methods throw when the one who runs them says no. */
export type ListedServices = {
  /** Of that digest: left alone when it runs already, else started in the place of the one before. */
  start(order: ServiceOrder): Promise<'started' | 'kept'>
  /** Returns when it has ended. Also where there is none. */
  stop(name: string): Promise<void>
  status(): Promise<readonly ServiceState[]>
  /** Children end; units go on. */
  close(): Promise<void>
}

export const openListedServices = (runs: RunsAs, timers: Timers): ListedServices =>
  runs === 'unit' ? servicesAsUnits() : servicesAsChildren(timers)

const stopWithinMs = 10_000
const shownLines = 5
const firstRestartMs = 500
const longestRestartMs = 60_000

type Life = {
  readonly order: ServiceOrder
  process: UserProcess | null
  restarts: number
  ended: string | null
  lines: readonly string[]
  over: boolean
  cancelRestart: Cancel
}

const servicesAsChildren = (timers: Timers): ListedServices => {
  const lives = new Map<string, Life>()

  const begin = (life: Life): void => {
    const { command, user, cwd } = life.order
    const process = startUserProcess({ command, user, cwd, env: environmentOf(life.order) })
    life.process = process
    void process.ended.then(({ code, how }) => {
      life.process = null
      life.ended = how
      life.lines = process.lastLines(shownLines)
      const { restart } = life.order
      if (life.over || restart === 'never' || (restart === 'on-failure' && code === 0)) return
      const waitMs = Math.min(longestRestartMs, firstRestartMs * 2 ** Math.min(life.restarts, 20))
      life.restarts += 1
      life.cancelRestart = timers.after(waitMs, () => begin(life), 'background')
    })
  }
  const end = async (life: Life): Promise<void> => {
    life.over = true
    life.cancelRestart()
    if (lives.get(life.order.name) === life) lives.delete(life.order.name)
    await life.process?.stop(stopWithinMs)
  }
  const stop = async (name: string): Promise<void> => {
    const life = lives.get(name)
    if (life !== undefined) await end(life)
  }
  return {
    start: async (order) => {
      const before = lives.get(order.name)
      if (before?.order.digest === order.digest && before.process !== null) return 'kept'
      await stop(order.name)
      const life: Life = {
        order,
        process: null,
        restarts: 0,
        ended: null,
        lines: [],
        over: false,
        cancelRestart: () => {},
      }
      lives.set(order.name, life)
      begin(life)
      return 'started'
    },
    stop,
    status: () =>
      Promise.resolve(
        [...lives.values()].map(({ order, process, restarts, ended, lines }) => ({
          name: order.name,
          digest: order.digest,
          state: process === null ? 'ended' : 'running',
          restarts,
          pid: process?.pid ?? null,
          ended,
          lines: [...(process?.lastLines(shownLines) ?? lines)],
        })),
      ),
    close: async () => void (await Promise.all([...lives.values()].map(end))),
  }
}

const prefix = 'muster-helper-'
const unitOf = (name: string): string => `${prefix}${name}.service`
/** Stopping takes up to 10 s of a service's own. */
const callWithinMs = 30_000

const servicesAsUnits = (): ListedServices => {
  const status = async (): Promise<readonly ServiceState[]> => {
    const shown = await called('systemctl', ['show', `--property=${shownProperties.join(',')}`, `${prefix}*.service`])
    const units = unitsIn(shown)
    return Promise.all(
      units.map(async (unit) => ({
        ...unit,
        lines: await linesOf(unit.name),
      })),
    )
  }
  const stop = async (name: string): Promise<void> => {
    await called('systemctl', ['--no-ask-password', 'stop', unitOf(name)], /not loaded|not found/i)
    // A unit that has failed keeps its name.
    await called('systemctl', ['--no-ask-password', 'reset-failed', unitOf(name)], /not loaded|not found/i)
  }
  return {
    status,
    stop,
    start: async (order) => {
      const before = (await status()).find(({ name }) => name === order.name)
      if (before?.digest === order.digest && before.state === 'running') return 'kept'
      if (before !== undefined) await stop(order.name)
      await called('systemd-run', startArguments(order))
      return 'started'
    },
    close: () => Promise.resolve(),
  }
}

const restartOf = { always: 'always', 'on-failure': 'on-failure', never: 'no' } as const

/** Pure. */
const startArguments = (order: ServiceOrder): readonly string[] => [
  '--quiet',
  '--no-ask-password',
  `--unit=${unitOf(order.name)}`,
  `--description=Muster service ${order.name} ${order.digest}`,
  ...(order.user === null ? [] : [`--uid=${order.user.name}`, `--gid=${order.user.gid}`]),
  '--service-type=exec',
  `--property=Restart=${restartOf[order.restart]}`,
  // Slow enough for systemd's own limit of five starts in ten seconds never to end it.
  '--property=RestartSec=3s',
  '--property=TimeoutStopSec=10s',
  '--property=NoNewPrivileges=yes',
  `--working-directory=${order.cwd}`,
  ...settingOf(order.env),
  '--',
  ...literalWords(order.command),
]

const shownProperties = [
  'Id',
  'Description',
  'LoadState',
  'ActiveState',
  'NRestarts',
  'MainPID',
  'Result',
  'ExecMainStatus',
]

/** Pure: what `systemctl show` prints, a paragraph a unit. */
const unitsIn = (shown: string): readonly ServiceState[] =>
  shown.split(/\n\n+/).flatMap((paragraph) => {
    const said = new Map(
      paragraph.split('\n').flatMap((line) => {
        const at = line.indexOf('=')
        return at === -1 ? [] : [[line.slice(0, at), line.slice(at + 1)] as const]
      }),
    )
    const id = said.get('Id') ?? ''
    if (!id.startsWith(prefix) || said.get('LoadState') === 'not-found') return []
    const isUp = ['active', 'reloading'].includes(said.get('ActiveState') ?? '')
    const result = said.get('Result') ?? ''
    return [
      {
        name: id.slice(prefix.length, -'.service'.length),
        digest: /([0-9a-f]{8,64})$/.exec(said.get('Description') ?? '')?.[1] ?? '',
        state: isUp ? 'running' : 'ended',
        restarts: Number(said.get('NRestarts') ?? 0) || 0,
        pid: Number(said.get('MainPID') ?? 0) || null,
        ended: isUp ? null : `${result || 'ended'}, exit code ${said.get('ExecMainStatus') ?? '?'}`,
        lines: [],
      },
    ]
  })

const linesOf = async (name: string): Promise<string[]> => {
  const asked = ['--no-pager', '--output=cat', `--lines=${shownLines}`, `--unit=${unitOf(name)}`]
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
