// A program of the host that may take only so much time and memory, and that ends with everything it has started: as a transient unit
// where systemd runs, else in a control group. Where neither is to be had it is not run.

import { spawn, type ChildProcess } from 'node:child_process'
import { controllersOfHost, openControlGroups, type ControlGroup, type GroupLimits } from './control-groups.ts'
import type { Owner } from './files.ts'
import { whyNotStarted } from './not-started.ts'
import { openOutputWindow, type KeptText } from './output-window.ts'
import { findProgram } from './run-program.ts'
import { plainEnvironment } from './service-process.ts'
import { sleep, systemTimers } from './timers.ts'
import { isActive, literalWords, stopUnits } from './transient-units.ts'

export type LimitedCommand = {
  readonly command: readonly string[]
  readonly cwd: string
  /** In a control group without any further groups, in a unit with those that the host gives that user; null: as this process. */
  readonly user: (Owner & { readonly name: string; readonly home: string }) | null
  /** On its standard input. */
  readonly input: string
  readonly withinMs: number
  /** Bytes of its beginning and of its end that are kept of what it writes. */
  readonly keptOutput: number
}

export type LimitedRun = {
  /** Null: by a signal, or it was not started. */
  readonly code: number | null
  /** For people: `exit code 3`, `ended by SIGKILL`. */
  readonly how: string
  readonly timedOut: boolean
  /** The client of systemd ended before the unit did: what became of the program is not known. */
  readonly isLost: boolean
  readonly output: KeptText
}

export type LimitedProgram = {
  /** Never rejects. Everything it started has ended when it resolves. `over`: it is ended at once. */
  run(command: LimitedCommand, over: AbortSignal): Promise<LimitedRun>
  /** Where it is not to be run after all. */
  drop(): Promise<void>
}

export type Limiter = {
  readonly by: 'unit' | 'cgroup2' | 'cgroup1'
  /** Null: the limits cannot be set. `name`: not two at a time. */
  prepare(name: string, limits: GroupLimits): LimitedProgram | null
  /** What an earlier process has left of that name. */
  endLeft(name: string): Promise<void>
}

/** Null: this host has no way to limit a program. `controllers`: those of the kernel, without which a unit has no limits. */
export const openLimiter = (runs: 'unit' | 'child', controllers = controllersOfHost()): Limiter | null => {
  if (runs === 'unit') {
    const holds = controllers.includes('memory') && controllers.includes('pids')
    return holds && findProgram('systemd-run') !== null ? limitedByUnits : null
  }
  const groups = openControlGroups()
  if (groups === null) return null
  return {
    by: groups.version === 2 ? 'cgroup2' : 'cgroup1',
    prepare: (name, limits) => {
      const group = groups.make(name, limits)
      return group === null ? null : inGroup(group, limits)
    },
    endLeft: async (name) => void (await groups.find(name)?.end()),
  }
}

/** What a program gets to end by itself when its time is over. */
const graceMs = 2_000
/** What it has started may hold its pipes open. */
const drainMs = 1_000

const inGroup = (group: ControlGroup, { memoryBytes }: GroupLimits): LimitedProgram => ({
  drop: async () => void (await group.end()),
  run: async (command, over) => {
    const window = openOutputWindow(command.keptOutput)
    const stop = (): void => {
      group.signal('SIGTERM')
      setTimeout(() => void group.end(), graceMs).unref()
    }
    const ran = await untilExit(() => start(enteringFirst(group, command)), command, { add: window.add, stop, over })
    const isOut = ran.code === null && group.ranOutOfMemory()
    await group.end()
    await Promise.race([ran.closed, sleep(systemTimers, drainMs, 'background')])
    const how = isOut ? `${ran.how}: it took more than its ${memoryBytes / 1024 ** 2} MiB of memory` : ran.how
    return { code: ran.code, timedOut: ran.timedOut, isLost: false, how, output: window.text() }
  },
})

/**
 * A small process goes into the group and becomes the program: one that was put there after its start may have started others before,
 * and once it has the rights of its own user it cannot go there itself. This process stays outside: in the group the kernel would end it,
 * which is the largest in there, for want of the program's memory.
 */
const enteringFirst = ({ entrances }: ControlGroup, command: LimitedCommand): LimitedCommand => {
  const { user } = command
  const asUser =
    user === null
      ? []
      : [
          ...[findProgram('setpriv') ?? 'setpriv', `--reuid=${user.uid}`, `--regid=${user.gid}`],
          ...['--clear-groups', '--no-new-privs', '--'],
        ]
  return {
    ...command,
    command: [
      '/bin/sh',
      '-c',
      enterAndBecome,
      'sh',
      String(entrances.length),
      ...entrances,
      ...asUser,
      ...command.command,
    ],
  }
}

/** A fixed text. What is run, and its words, are arguments and no part of it. */
const enterAndBecome =
  'n=$1; shift; while [ "$n" -gt 0 ]; do echo $$ > "$1" || exit 126; shift; n=$((n - 1)); done; exec "$@"'

/** Beyond its time: for a unit whose starter is gone. */
const unitGraceMs = 10_000

const limitedByUnits: Limiter = {
  by: 'unit',
  prepare: (name, limits) => ({
    drop: () => Promise.resolve(),
    run: async (command, over) => {
      const window = openOutputWindow(command.keptOutput)
      const client = {
        ...command,
        command: [findProgram('systemd-run') ?? 'systemd-run', ...unitArguments(name, command, limits)],
        cwd: '/',
        user: null,
      }
      const unit = `${name}.service`
      const stop = (): void => void stopUnits([unit]).catch(() => {})
      const ran = await untilExit(() => start(client), client, { add: window.add, stop, over })
      // Killed, or cut off from systemd: the program does not notice that, and would go on without anybody.
      const isLeft = ran.isStarted && !ran.timedOut && !over.aborted && (ran.code === null || (await isActive(unit)))
      const isStopped = await stopUnits([unit]).then(
        () => true,
        () => false,
      )
      await Promise.race([ran.closed, sleep(systemTimers, drainMs, 'background')])
      const { code, timedOut, how } = ran
      return { code, timedOut, isLost: isLeft || (ran.isStarted && !isStopped), how, output: window.text() }
    },
  }),
  endLeft: (name) => stopUnits([`${name}.service`]),
}

const unitArguments = (
  name: string,
  { command, cwd, user, withinMs }: LimitedCommand,
  { memoryBytes, mostProcesses }: GroupLimits,
): readonly string[] => [
  '--quiet',
  '--no-ask-password',
  '--collect',
  '--wait',
  '--pipe',
  `--unit=${name}.service`,
  '--service-type=exec',
  ...(user === null ? [] : [`--uid=${user.name}`, `--gid=${user.gid}`, '--property=NoNewPrivileges=yes']),
  `--property=RuntimeMaxSec=${Math.ceil((withinMs + unitGraceMs) / 1000)}s`,
  `--property=MemoryMax=${memoryBytes}`,
  '--property=MemorySwapMax=0',
  `--property=TasksMax=${mostProcesses}`,
  '--property=KillMode=control-group',
  `--property=TimeoutStopSec=${graceMs / 1000}s`,
  `--working-directory=${cwd}`,
  '--',
  ...literalWords(command),
]

/** With the environment of its user; it takes that user's rights itself, or systemd gives them to it. */
const start = ({ command, cwd, user, input }: LimitedCommand): ChildProcess => {
  const [program = '', ...args] = command
  const child = spawn(program, args, {
    cwd,
    env: { ...plainEnvironment(), ...(user === null ? {} : { HOME: user.home, USER: user.name, LOGNAME: user.name }) },
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  child.stdin?.on('error', () => {})
  child.stdin?.end(input)
  return child
}

type Watch = {
  add(chunk: Uint8Array): void
  /** Its time is over, or it is to end otherwise. */
  stop(): void
  readonly over: AbortSignal
}

/** `closed`: nothing holds its pipes open any more. */
type Exited = Pick<LimitedRun, 'code' | 'how' | 'timedOut'> & {
  readonly isStarted: boolean
  readonly closed: Promise<void>
}

const untilExit = async (
  begin: () => ChildProcess,
  { command, cwd, withinMs }: LimitedCommand,
  { add, stop, over }: Watch,
): Promise<Exited> => {
  const notStarted = (error: unknown): Exited => ({
    code: null,
    isStarted: false,
    how: `could not be started: ${whyNotStarted(error, command[0] ?? '', cwd)}`,
    timedOut: false,
    closed: Promise.resolve(),
  })
  let child: ChildProcess
  try {
    child = begin()
  } catch (error) {
    return notStarted(error)
  }
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', add).on('error', () => {})
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()))
  let timedOut = false
  const timer = setTimeout(() => {
    timedOut = true
    stop()
  }, withinMs)
  over.addEventListener('abort', stop)
  if (over.aborted) stop()
  const exited = await new Promise<Exited>((resolve) => {
    child.once('error', (error) => resolve(notStarted(error)))
    child.once('exit', (code, signal) => {
      const how = code === null ? `ended by ${signal}` : `exit code ${code}`
      resolve({ code, isStarted: true, how, timedOut, closed })
    })
  })
  clearTimeout(timer)
  over.removeEventListener('abort', stop)
  return exited
}
