// A host that takes tasks: a helper and an agent in processes of their own, and an agent.toml that lets a plane have things done there.

import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { readStatusFile } from '#agent/diagnostics/status-file.ts'
import { joinMember, untilConnected, type Member } from './agent-member.ts'
import { startChild, startedCommand, type Child } from './child.ts'
import { cleanup, type Scope } from './cleanup.ts'
import { eventually } from './eventually.ts'
import type { Reply } from './operator-call.ts'
import { startAgent } from './start-agent.ts'
import type { Plane } from './start-plane.ts'

export type TaskHost = {
  readonly id: string
  readonly folder: string
  agent(): Member
  /** Ends the process at once, and starts another. */
  killAgent(): Promise<void>
  /** `meanwhile`: while there is none, before the other one is started. */
  killHelper(meanwhile?: () => Promise<unknown>): Promise<void>
  /** Of the programs `slow` and `flood`: one line each time one was started. */
  runs(): readonly string[]
  /** Of the program `note`: its argument, each time it was started. */
  noted(): readonly string[]
  /** As a machine without a disk restarts: both end in order, nothing that they wrote is left, and both are started. */
  restartWithNothing(): Promise<void>
  /** What the helper remembers of the tasks it has begun. */
  remembered(): readonly RememberedTask[]
  /** The number of the newest statement of verifiers that the helper has taken; null: it has taken none. */
  statementNumber(): number | null
  /** What the agent and the helper of now have logged, for the message of a test that fails. */
  log(): string
  /** Lets every `slow` and `flood` end, until they are held again. */
  letGo(): void
  hold(): void
}

/** What the program `flood` writes. */
export const floodBytes = process.env['MUSTER_LONG'] === '1' ? 2 ** 33 : 2 ** 30

export type RememberedTask = {
  readonly id: string
  /** The plane has acknowledged its result. */
  readonly forgotten: boolean
}

const isRoot = process.geteuid?.() === 0

/** Not the user of the agent, whose keys it could read. */
export const programUser = isRoot ? 'nobody' : os.userInfo().username

type Listing = {
  readonly domain: string
  readonly id: string
  readonly types: readonly string[]
  readonly more: string
}

const agentToml = (folder: string, { domain, id, types, more }: Listing): string => {
  // Waits until it may end, so that a test can do something in the middle.
  const held = 'echo run >> runs; while [ ! -e go ]; do sleep 0.05; done'
  const slow = `cd ${folder}/work; ${held}; echo it is done`
  const flood = `cd ${folder}/work; ${held} & head -c ${floodBytes} /dev/zero; wait`
  // What it starts leaves its process group.
  const stubborn = "trap '' TERM; setsid sh -c 'while :; do sleep 600; done' & while :; do wait; done"
  return `
[node]
domain = "${domain}"
id = "${id}"

[tasks]
statement_keys = "${folder}/statement-keys.pem"
allow = ${JSON.stringify(types)}

[tasks.run.slow]
executable = "/bin/sh"
user = "${programUser}"
arguments = ["-c", ${JSON.stringify(slow)}]

[tasks.run.flood]
executable = "/bin/sh"
user = "${programUser}"
arguments = ["-c", ${JSON.stringify(flood)}]

[tasks.run.stubborn]
executable = "/bin/sh"
user = "${programUser}"
arguments = ["-c", ${JSON.stringify(stubborn)}]
within = "1s"

[tasks.run.quick]
executable = "/bin/echo"
user = "${programUser}"
arguments = ["quick as it is"]

[tasks.run.note]
executable = "${folder}/note"
user = "${programUser}"
arguments = "any"

[[tasks.files]]
directory = "${folder}/files"
${more}`
}

/** A helper of root's takes nothing below a folder that all may write to, as that of temporary files is. */
export const hostFolder = (t: Scope): string => {
  const folder = fs.mkdtempSync(path.join(isRoot ? '/run' : os.tmpdir(), 'muster-'))
  fs.chmodSync(folder, 0o755)
  cleanup(t, () => fs.rmSync(folder, { recursive: true, force: true, maxRetries: 3 }))
  return folder
}

/** In the state folder of a helper. */
export const tasksRemembered = (folder: string): readonly RememberedTask[] => {
  const tasks = path.join(folder, 'tasks')
  const files = fs.existsSync(tasks) ? fs.readdirSync(tasks).filter((name) => /^task_\w+\.json$/.test(name)) : []
  return files.flatMap((name) => {
    const text = readIfThere(path.join(tasks, name))
    return text === null ? [] : [JSON.parse(text) as RememberedTask]
  })
}

/** The process that writes it may remove it. */
const readIfThere = (file: string): string | null => {
  try {
    return fs.readFileSync(file, 'utf8')
  } catch {
    return null
  }
}

/** The lines of a file that programs write to, each with one write. */
export const linesOf = (file: string): readonly string[] => (readIfThere(file) ?? '').split('\n').slice(0, -1)

/** A program that writes down its argument. Any user may run it, and it writes to a file that any user may write to. */
export const writeNoteProgram = (program: string, notes: string): void => {
  fs.writeFileSync(notes, '')
  fs.chmodSync(notes, 0o666)
  fs.writeFileSync(program, `#!/bin/sh\necho "$1" >> ${notes}\n`)
  fs.chmodSync(program, 0o755)
}

export const socketIn = (folder: string): string => path.join(folder, 'run', 'socket')

/** By the agent.toml in the folder of the host. */
export const startHelper = async (
  t: Scope,
  folder: string,
  command = startedCommand,
  env: Readonly<Record<string, string>> = {},
): Promise<Child> => {
  const socket = socketIn(folder)
  const places = ['--config', path.join(folder, 'agent.toml'), '--state', path.join(folder, 'helper')]
  const helper = startChild(
    t,
    command,
    ['agent', 'helper', ...places, '--socket', socket, '--agent-user', os.userInfo().username],
    { env },
  )
  await eventually('the helper to be ready', () => {
    if (!helper.running()) throw new Error(`the helper ended: ${helper.stderr()}`)
    return fs.existsSync(socket)
  })
  return helper
}

/** Characters: the last minutes of a quiet process. */
const shownLog = 12_000

type HostOptions = {
  /** For the agent, besides what it needs. */
  readonly agentArgs?: readonly string[]
  /** At the end of agent.toml. */
  readonly listed?: (folder: string, user: string) => string
  /** Of agent and helper. */
  readonly env?: Readonly<Record<string, string>>
  /** It takes reboots: a program that writes them down is found where that of the system would be. */
  readonly reboots?: boolean
  /** It joins by this address, under the profile `hpc-diskless`, and keeps no identity; left out: by a token. */
  readonly mac?: string
}

/** Registers a machine, and says with what each start of its agent joins. */
const joiningByHardware = async (plane: Plane, id: string, mac: string, folder: string) => {
  const { status, body } = await plane.api('POST', '/v1/nodes', { id, profile: 'hpc-diskless', macs: [mac] })
  if (status >= 300) throw new Error(`${id} was not registered: ${JSON.stringify(body)}`)
  const file = path.join(folder, 'hardware.json')
  fs.writeFileSync(file, JSON.stringify({ macs: [mac], bmc_serial: null }), { mode: 0o600 })
  const join = `muster1,${plane.nodeUrl},${plane.domain},sha256:${plane.rootFingerprint},-`
  return { join, args: ['--hardware-file', file] }
}

const usualTypes = ['run', 'fetch-file', 'rotate-recovery', 'collect-diagnostics']

/** The environment in which a helper finds no program that restarts the machine of the test. */
const writingRebootsDown = (folder: string): Readonly<Record<string, string>> => {
  const programs = path.join(folder, 'bin')
  fs.mkdirSync(programs, { mode: 0o755 })
  for (const name of ['reboot', 'systemctl'])
    fs.writeFileSync(path.join(programs, name), `#!/bin/sh\necho "$0 $*" >> ${folder}/reboots\n`, { mode: 0o755 })
  return { PATH: `${programs}:${process.env['PATH'] ?? ''}` }
}

export const startTaskHost = async (
  t: Scope,
  plane: Plane,
  id: string,
  { agentArgs = [], listed = () => '', env: given = {}, reboots = false, mac }: HostOptions = {},
): Promise<TaskHost> => {
  const folder = hostFolder(t)
  const env = reboots ? { ...given, ...writingRebootsDown(folder) } : given
  fs.mkdirSync(path.join(folder, 'files'), { mode: 0o755 })
  const work = path.join(folder, 'work')
  fs.mkdirSync(work)
  fs.chmodSync(work, 0o777)
  writeNoteProgram(path.join(folder, 'note'), path.join(work, 'notes'))
  const keys = await plane.muster('ca', 'bundle', '--statements')
  if (keys.code !== 0) throw new Error(`no statement keys: ${keys.stderr}`)
  fs.writeFileSync(path.join(folder, 'statement-keys.pem'), keys.stdout, { mode: 0o644 })
  const types = reboots ? [...usualTypes, 'reboot'] : usualTypes
  const listing = { domain: plane.domain, id, types, more: listed(folder, programUser) }
  fs.writeFileSync(path.join(folder, 'agent.toml'), agentToml(folder, listing), { mode: 0o644 })
  const socket = socketIn(folder)
  let helper = await startHelper(t, folder, startedCommand, env)
  const args = ['--helper-socket', socket, '--config', path.join(folder, 'none.toml'), ...agentArgs]
  fs.writeFileSync(path.join(folder, 'none.toml'), '', { mode: 0o600 })
  const state = path.join(folder, 'state')
  const byHardware = mac === undefined ? null : await joiningByHardware(plane, id, mac, folder)
  const joinAnew = async (): Promise<Member> => {
    if (byHardware === null) return joinMember(t, plane, { id, profile: 'gpu-cloud', state, args, env })
    const { join } = byHardware
    const started = startAgent(t, { join, state, args: [...args, ...byHardware.args], env })
    return { ...started, id, says: () => readStatusFile(state) }
  }
  let agent = await joinAnew()
  await untilConnected([agent])
  return {
    id,
    folder,
    agent: () => agent,
    killAgent: async () => {
      await agent.kill9()
      agent = { ...agent, ...agent.restart() }
    },
    killHelper: async (meanwhile = async () => {}) => {
      await helper.kill9()
      fs.rmSync(socket, { force: true })
      await meanwhile()
      helper = await startHelper(t, folder, startedCommand, env)
    },
    restartWithNothing: async () => {
      await agent.stop()
      await helper.stop()
      for (const kept of [socket, state, path.join(folder, 'helper')]) fs.rmSync(kept, { recursive: true, force: true })
      helper = await startHelper(t, folder, startedCommand, env)
      agent = await joinAnew()
      await untilConnected([agent])
    },
    runs: () => linesOf(path.join(work, 'runs')),
    noted: () => linesOf(path.join(work, 'notes')),
    remembered: () => tasksRemembered(path.join(folder, 'helper')),
    statementNumber: () => {
      const text = readIfThere(path.join(folder, 'helper', 'tasks', 'statement.json'))
      return text === null ? null : ((JSON.parse(text) as { memory: { number: number } | null }).memory?.number ?? null)
    },
    log: () => `agent:\n${agent.stderr().slice(-shownLog)}\nhelper:\n${helper.stderr().slice(-shownLog)}`,
    letGo: () => fs.writeFileSync(path.join(work, 'go'), ''),
    hold: () => fs.rmSync(path.join(work, 'go'), { force: true }),
  }
}

/** Queues a task, and answers with its id. */
export const queueTask = async (plane: Plane, node: string, type: string, parameters: object = {}): Promise<string> => {
  const { status, body } = await plane.api('POST', '/v1/tasks', { node, type, parameters })
  if (status >= 300) throw new Error(`${type} was not queued: ${JSON.stringify(body)}`)
  return body.id
}

const open: ReadonlySet<string> = new Set(['queued', 'dispatched'])

/** The task as operators see it, once it has ended. */
export const endOfTask = (plane: Plane, id: string): Promise<Reply['body']> =>
  eventually(
    `task ${id} to end`,
    async () => {
      const { body } = await plane.api('GET', `/v1/tasks/${id}`)
      return open.has(body.state) || body.state === undefined ? null : body
    },
    { withinMs: 90_000, everyMs: 100 },
  )
