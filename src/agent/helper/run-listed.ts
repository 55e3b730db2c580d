// Runs what agent.toml lists: a reload, a check. With the path, the user and the arguments that are in that file, never through a
// shell, no longer than it allows, and nothing of it is left afterwards. Where systemd runs, a program gets a unit of its own: it
// has then nothing of the helper's sandbox, and its control group ends with it.

import { createHash } from 'node:crypto'
import { processOwner, type Owner } from '#platform/files.ts'
import { pathExists } from '#platform/paths.ts'
import { findProgram, runProgram } from '#platform/run-program.ts'
import { plainEnvironment } from '#platform/service-process.ts'
import { findUser, type SystemUser } from '#platform/system-users.ts'
import { cancelJobOf, literalWords } from '#platform/transient-units.ts'
import { faultOfPath, type Trust } from '#platform/trusted-path.ts'
import { runInTime, type RanInTime } from '#platform/user-process.ts'
import type { ListedProgram, ListedReload } from './agent-toml.ts'
import { refused, type Refused } from './verbs.ts'

/** As what a program of the host is run: as a unit of systemd, or as a child of this process. */
export type RunsAs = 'unit' | 'child'

/** Only root may start units for other users. */
export const howToRun = (trust: Trust): RunsAs =>
  trust.uid === 0 && pathExists('/run/systemd/system') ? 'unit' : 'child'

/** In the names of units: two helpers on one machine have two files, and keep out of each other's way. */
export const unitMark = (agentToml: string): string => createHash('sha256').update(agentToml).digest('hex').slice(0, 8)

export type Runner = {
  readonly runs: RunsAs
  readonly mark: string
  /** When it is aborted what runs is ended: without the one that counts its time it would run for ever. */
  readonly over: AbortSignal
}

/** Null: done. Also for an agent without a helper, which then does what its own user may do. */
export const runReload = async (
  name: string,
  reload: ListedReload,
  { runs, mark, over }: Runner,
  trust: Trust,
): Promise<Refused | null> => {
  const command = reload.kind === 'unit' ? unitCommand(reload) : reload.command
  if ('code' in command) return command
  const user = reload.kind === 'unit' || reload.user === null ? null : userNamed(reload.user)
  if (user !== null && 'code' in user) return user
  const fault = reload.kind === 'unit' ? null : faultOfProgram(command[0] ?? '', trust)
  if (fault !== null) return fault
  const ran = await runOnce({
    unit: onceUnit(mark, 'reload', name),
    command,
    user,
    withinMs: reload.withinMs,
    runs: reload.kind === 'unit' ? 'child' : runs,
    over,
  })
  if (reload.kind === 'unit' && (ran.timedOut || over.aborted)) await cancelJobOf(reload.unit)
  if (ran.timedOut) {
    return refused('TIMED_OUT', `Reload ${name} was ended: it took longer than ${reload.withinMs / 1000} s`)
  }
  const said = ran.lines.at(-1)
  return ran.code === 0
    ? null
    : refused('PROGRAM_FAILED', `Reload ${name} failed: ${ran.how}${said === undefined ? '' : ` (${said})`}`)
}

const unitCommand = ({ unit, action }: ListedReload & { kind: 'unit' }): readonly string[] | Refused => {
  const systemctl = findProgram('systemctl')
  return systemctl === null
    ? refused('PROGRAM_FAILED', `There is no systemctl here to ${action} ${unit}`)
    : [systemctl, '--no-ask-password', action, unit]
}

export const faultOfProgram = (executable: string, trust: Trust): Refused | null => {
  const fault = faultOfPath(executable, trust, { kind: 'file', links: 'followed' })
  return fault === null ? null : refused('PATH_UNSAFE', `${executable} is not run: ${fault}`)
}

export type ListedRun = {
  /** What it is called where it is one; not two of one name at a time. */
  readonly unit: string
  readonly command: readonly string[]
  /** Null: as the user of this process. */
  readonly user: SystemUser | null
  readonly withinMs: number
  readonly runs: RunsAs
  readonly over: AbortSignal
}

/** Beyond its time: for a unit that the helper, being gone itself, does not stop. */
const unitGraceMs = 10_000
const stopWithinMs = 10_000

export const runOnce = async (run: ListedRun): Promise<RanInTime> => {
  const { command, user, withinMs, unit, over } = run
  if (run.runs === 'child')
    return runInTime({ command, env: environmentOf({ env: {}, user }), cwd: '/', user }, withinMs, over)
  const client = [findProgram('systemd-run') ?? 'systemd-run', ...unitArguments(run)]
  const ran = await runInTime(
    { command: client, env: environmentOf({ env: {}, user: null }), cwd: '/', user: null },
    withinMs,
    over,
  )
  // What has ended is the one that waited for it; it may have been killed.
  if (ran.timedOut || over.aborted || ran.code === null)
    await runProgram('systemctl', ['stop', unit], { withinMs: stopWithinMs, input: null })
  return ran
}

export const onceUnit = (mark: string, verb: 'reload' | 'check', name: string): string =>
  `muster-once-${mark}-${verb}-${name}.service`

const unitArguments = ({ unit, command, user, withinMs }: ListedRun): readonly string[] => [
  '--quiet',
  '--no-ask-password',
  '--collect',
  '--wait',
  '--pipe',
  `--unit=${unit}`,
  '--service-type=exec',
  ...(user === null ? [] : [`--uid=${user.name}`, `--gid=${user.gid}`, '--property=NoNewPrivileges=yes']),
  `--property=RuntimeMaxSec=${Math.ceil((withinMs + unitGraceMs) / 1000)}s`,
  '--property=TimeoutStopSec=2s',
  '--working-directory=/',
  '--',
  ...literalWords(command),
]

/** `env`: besides PATH, HOME and LANG. */
export const environmentOf = ({
  env,
  user,
}: {
  readonly env: Readonly<Record<string, string>>
  readonly user: SystemUser | null
}): Readonly<Record<string, string>> => ({
  ...plainEnvironment(),
  ...(user === null ? {} : { HOME: user.home, USER: user.name, LOGNAME: user.name }),
  ...env,
})

const userNamed = (name: string): SystemUser | Refused =>
  findUser(name) ?? refused('NOT_ALLOWED', `There is no user ${name} on this host`)

/**
 * As whom a service or a check runs: never as root, whose rights it would have, nor as the agent, whose keys it could read. A helper
 * that was started by hand has no other user to offer than its own, which is null.
 */
export const userOf = (
  name: string,
  { user: userName }: ListedProgram,
  agentUser: Owner | null,
): SystemUser | Refused | null => {
  const user = userNamed(userName)
  if ('code' in user) return user
  const own = processOwner().uid
  if (own !== 0) {
    const why = `${name} is for user ${userName}; a helper of user ${own} runs programs as that user only`
    return user.uid === own ? null : refused('NOT_ALLOWED', why)
  }
  if (user.uid === 0) return refused('NOT_ALLOWED', `${name} is for user ${userName}: nothing is run as root`)
  if (user.uid === agentUser?.uid) {
    return refused('NOT_ALLOWED', `${name} is for user ${userName}, who is the agent: it could read the agent's keys`)
  }
  return user
}

/** What of the request goes to the program, or why it does not run. */
export const argumentsFor = (
  name: string,
  listed: ListedProgram,
  given: readonly string[],
): { readonly words: readonly string[] } | Refused => {
  if (listed.arguments === 'any') return { words: given }
  const isSame = given.length === 0 || JSON.stringify(given) === JSON.stringify(listed.arguments)
  return isSame
    ? { words: listed.arguments }
    : refused('NOT_ALLOWED', `agent.toml lists other arguments for ${name}; "any" would allow these`)
}

/** What an agent tells every service about its node. */
const ownVariables = ['MUSTER_NODE', 'MUSTER_OVERLAY', 'MUSTER_VCLUSTER']
/** Those of the helper hold, whatever the agent's are. */
const hostVariables = ['PATH', 'HOME', 'LANG']

/** What of the request is set for the program, or why it does not run. */
export const environmentFor = (
  name: string,
  { environment }: ListedProgram,
  given: Readonly<Record<string, string>>,
): { readonly env: Readonly<Record<string, string>> } | Refused => {
  const asked = Object.entries(given).filter(([key]) => !hostVariables.includes(key))
  const other = asked.find(([key]) => !environment.includes(key) && !ownVariables.includes(key))
  return other === undefined
    ? { env: Object.fromEntries(asked) }
    : refused('NOT_ALLOWED', `agent.toml does not list variable ${other[0]} for ${name}`)
}
