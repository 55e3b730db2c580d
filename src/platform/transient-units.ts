// Services as transient units of systemd: started, looked at and stopped by its own programs. Which properties a unit has, and what
// its state means, is up to the caller.

import * as path from 'node:path'
import { writeEnvironmentFile } from './environment-file.ts'
import { makeFolder, removeFile } from './files.ts'
import { namesIn } from './folder.ts'
import { runProgram } from './run-program.ts'

/** Stopping takes up to 10 s of a service's own. */
const callWithinMs = 30_000

/** Throws what the program said. `harmless`: what it may say. */
export const callSystemd = async (program: string, args: readonly string[], harmless?: RegExp): Promise<string> => {
  const ran = await runProgram(program, args, { withinMs: callWithinMs, input: null })
  if (ran.kind === 'done') return ran.stdout
  const why = ran.kind === 'failed' ? ran.why : 'is not installed'
  if (harmless?.test(why) !== true) throw new Error(`${program}: ${why}`)
  return ''
}

/** What systemd says of a unit. */
export type ShownUnit = {
  /** Without the prefix and `.service`. */
  readonly name: string
  readonly description: string
  /** `ActiveState`: active, activating, failed, ... */
  readonly active: string
  /** Its program has ended, and the unit is kept to see how. */
  readonly hasExited: boolean
  readonly restarts: number
  readonly pid: number | null
  /** systemd's word for what became of it: exit-code, signal, oom-kill, ... */
  readonly result: string
  readonly exitStatus: string
}

const properties = [
  ...['Id', 'Description', 'LoadState', 'ActiveState', 'SubState', 'NRestarts', 'MainPID'],
  ...['Result', 'ExecMainStatus'],
]

/** The services whose names begin with the prefix. */
export const showUnits = async (prefix: string): Promise<readonly ShownUnit[]> =>
  unitsIn(await callSystemd('systemctl', ['show', `--property=${properties.join(',')}`, `${prefix}*.service`]), prefix)

/** What `systemctl show` prints, a paragraph a unit. */
export const unitsIn = (shown: string, prefix: string): readonly ShownUnit[] =>
  shown.split(/\n\n+/).flatMap((paragraph) => {
    const said = new Map(
      paragraph.split('\n').flatMap((line) => {
        const at = line.indexOf('=')
        return at === -1 ? [] : [[line.slice(0, at), line.slice(at + 1)] as const]
      }),
    )
    const id = said.get('Id') ?? ''
    if (!id.startsWith(prefix) || !id.endsWith('.service') || said.get('LoadState') === 'not-found') return []
    return [
      {
        name: id.slice(prefix.length, -'.service'.length),
        description: said.get('Description') ?? '',
        active: said.get('ActiveState') ?? '',
        hasExited: said.get('SubState') === 'exited',
        restarts: Number(said.get('NRestarts') ?? 0) || 0,
        pid: Number(said.get('MainPID') ?? 0) || null,
        result: said.get('Result') ?? '',
        exitStatus: said.get('ExecMainStatus') ?? '',
      },
    ]
  })

/** Returns when they have ended. Those that are not there are none. */
export const stopUnits = async (units: readonly string[]): Promise<void> => {
  if (units.length === 0) return
  await callSystemd('systemctl', ['--no-ask-password', 'stop', ...units], /not loaded|not found/i)
  // A unit that has failed keeps its name.
  await callSystemd('systemctl', ['--no-ask-password', 'reset-failed', ...units], /not loaded|not found/i)
}

/** Whether a program of the unit may still run. */
export const isActive = async (unit: string): Promise<boolean> => {
  const args = ['show', '--property=ActiveState', '--value', unit]
  const shown = await runProgram('systemctl', args, { withinMs: callWithinMs, input: null })
  return shown.kind !== 'done' || !['inactive', 'failed', ''].includes(shown.stdout.trim())
}

const cancelWithinMs = 10_000

/**
 * For a call of systemctl that was ended while it waited: systemd goes on with what it was asked for. Its job is cancelled, and the
 * command of the unit file that does not end (`ExecReload=`) is killed. The program that the unit is for is left alone.
 */
export const cancelJobOf = async (unit: string): Promise<void> => {
  const call = (...args: string[]) => runProgram('systemctl', args, { withinMs: cancelWithinMs, input: null })
  const shown = await call('show', '--property=Job', '--value', unit)
  const job = shown.kind === 'done' ? shown.stdout.trim() : ''
  if (/^[1-9]\d*$/.test(job)) await call('--no-ask-password', 'cancel', job)
  await call('--no-ask-password', 'kill', '--kill-who=control', '--signal=SIGKILL', unit)
}

const linesWithinMs = 10_000
/** Looking at a hundred units that fail must not be a hundred processes at once. */
const readersAtOnce = 4

/** The last lines of each in the journal. Who may not read the journal of the machine says nothing of it. */
export const lastOfUnits = async (units: readonly string[], lines: number): Promise<ReadonlyMap<string, string>> => {
  const found = new Map<string, string>()
  const left = [...units]
  const read = async (): Promise<void> => {
    for (let unit = left.shift(); unit !== undefined; unit = left.shift()) {
      const args = ['--quiet', '--no-pager', '--output=cat', `--lines=${lines}`, `--unit=${unit}`]
      const ran = await runProgram('journalctl', args, { withinMs: linesWithinMs, input: null })
      if (ran.kind === 'done') found.set(unit, ran.stdout)
    }
  }
  await Promise.all(Array.from({ length: readersAtOnce }, read))
  return found
}

export const restartProperty = { always: 'always', 'on-failure': 'on-failure', never: 'no' } as const

export type UnitLimits = {
  readonly memoryBytes: number | null
  readonly cpus: number | null
  readonly openFiles: number | null
}

export const limitProperties = ({ memoryBytes, cpus, openFiles }: UnitLimits): readonly string[] => [
  ...(memoryBytes === null ? [] : [`--property=MemoryMax=${memoryBytes}`]),
  ...(cpus === null ? [] : [`--property=CPUQuota=${Math.round(cpus * 100)}%`]),
  ...(openFiles === null ? [] : [`--property=LimitNOFILE=${openFiles}`]),
]

/** The kernel's own, which systemd raises. */
const leastHardOpenFiles = 4096

/** What a service may open at most on this host if nothing else is said. It could set itself any limit up to that one. */
export const hardOpenFiles = async (): Promise<number> => {
  const said = await callSystemd('systemctl', ['show', '--property=DefaultLimitNOFILE'])
  const [, most] = /^DefaultLimitNOFILE=(\d+|infinity)$/m.exec(said) ?? []
  return most === 'infinity' ? Infinity : Number(most ?? leastHardOpenFiles)
}

/** systemd replaces $NAME in commands; a child gets it as it is. */
export const literalWords = (words: readonly string[]): readonly string[] =>
  words.map((word) => word.replaceAll('$', '$$$$'))

/** Files with the environments of units, which may hold secrets: for the user of this process alone. */
export type UnitEnvironments = {
  /** The file; null where nothing is set. */
  write(unit: string, env: Readonly<Record<string, string>>): string | null
  drop(unit: string): void
  /** Removes those of other units that an earlier process has left: of services that ended meanwhile, or before a restart. */
  keepOnly(units: readonly string[]): void
}

/** `prefix`: of the units whose files are in it. */
export const openUnitEnvironments = (folder: string, prefix: string): UnitEnvironments => {
  const fileOf = (unit: string): string => path.join(folder, `${unit}.env`)
  /** By this process: a file is there before its unit is. */
  const written = new Set<string>()
  const drop = (name: string): void => {
    if (namesIn(folder).includes(name)) removeFile(path.join(folder, name))
  }
  return {
    write: (unit, env) => {
      if (Object.keys(env).length === 0) return null
      makeFolder(folder, 0o700)
      written.add(unit)
      writeEnvironmentFile(fileOf(unit), env)
      return fileOf(unit)
    },
    drop: (unit) => {
      written.delete(unit)
      drop(`${unit}.env`)
    },
    keepOnly: (units) => {
      const kept = new Set([...units, ...written].map((unit) => `${unit}.env`))
      for (const name of namesIn(folder)) if (name.startsWith(prefix) && !kept.has(name)) drop(name)
    },
  }
}
