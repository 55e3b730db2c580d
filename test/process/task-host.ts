// A host that takes tasks: a helper and an agent in processes of their own, and an agent.toml that lets a plane have things done there.

import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { joinMember, untilConnected, type Member } from './agent-member.ts'
import { startChild, startedCommand, type Child } from './child.ts'
import { cleanup, type Scope } from './cleanup.ts'
import { eventually } from './eventually.ts'
import type { Reply } from './operator-call.ts'
import type { Plane } from './start-plane.ts'

export type TaskHost = {
  readonly id: string
  readonly folder: string
  agent(): Member
  /** Ends the process at once, and starts another. */
  killAgent(): Promise<void>
  killHelper(): Promise<void>
  /** Of the program `slow`: one line each time it was started. */
  runs(): readonly string[]
  /** Lets every `slow` end, until they are held again. */
  letGo(): void
  hold(): void
}

const isRoot = process.geteuid?.() === 0

/** Not the user of the agent, whose keys it could read. */
const programUser = isRoot ? 'nobody' : os.userInfo().username

const agentToml = (folder: string, domain: string, id: string): string => {
  // Waits until it may end, so that a test can do something in the middle.
  const slow = `cd ${folder}/work; echo run >> runs; while [ ! -e go ]; do sleep 0.05; done; echo it is done`
  return `
[node]
domain = "${domain}"
id = "${id}"

[tasks]
statement_keys = "${folder}/statement-keys.pem"
allow = ["run", "fetch-file", "rotate-recovery", "collect-diagnostics"]

[tasks.run.slow]
executable = "/bin/sh"
user = "${programUser}"
arguments = ["-c", ${JSON.stringify(slow)}]

[tasks.run.quick]
executable = "/bin/echo"
user = "${programUser}"
arguments = ["quick as it is"]

[[tasks.files]]
directory = "${folder}/files"
`
}

/** A helper of root's takes nothing below a folder that all may write to, as that of temporary files is. */
const hostFolder = (t: Scope): string => {
  const folder = fs.mkdtempSync(path.join(isRoot ? '/run' : os.tmpdir(), 'muster-'))
  fs.chmodSync(folder, 0o755)
  cleanup(t, () => fs.rmSync(folder, { recursive: true, force: true, maxRetries: 3 }))
  return folder
}

/** `agentArgs`: for the agent, besides what it needs. */
export const startTaskHost = async (
  t: Scope,
  plane: Plane,
  id: string,
  agentArgs: readonly string[] = [],
): Promise<TaskHost> => {
  const folder = hostFolder(t)
  fs.mkdirSync(path.join(folder, 'files'), { mode: 0o755 })
  const work = path.join(folder, 'work')
  fs.mkdirSync(work)
  fs.chmodSync(work, 0o777)
  const keys = await plane.muster('ca', 'bundle', '--statements')
  if (keys.code !== 0) throw new Error(`no statement keys: ${keys.stderr}`)
  fs.writeFileSync(path.join(folder, 'statement-keys.pem'), keys.stdout, { mode: 0o644 })
  fs.writeFileSync(path.join(folder, 'agent.toml'), agentToml(folder, plane.domain, id), { mode: 0o644 })
  const socket = path.join(folder, 'run', 'socket')
  const startHelper = async (): Promise<Child> => {
    const places = ['--config', path.join(folder, 'agent.toml'), '--state', path.join(folder, 'helper')]
    const helper = startChild(
      t,
      startedCommand,
      ['agent', 'helper', ...places, '--socket', socket, '--agent-user', os.userInfo().username],
      {},
    )
    await eventually('the helper to be ready', () => {
      if (!helper.running()) throw new Error(`the helper ended: ${helper.stderr()}`)
      return fs.existsSync(socket)
    })
    return helper
  }
  let helper = await startHelper()
  const args = ['--helper-socket', socket, '--config', path.join(folder, 'none.toml'), ...agentArgs]
  fs.writeFileSync(path.join(folder, 'none.toml'), '', { mode: 0o600 })
  let agent = await joinMember(t, plane, { id, profile: 'gpu-cloud', state: path.join(folder, 'state'), args })
  await untilConnected([agent])
  return {
    id,
    folder,
    agent: () => agent,
    killAgent: async () => {
      await agent.kill9()
      agent = { ...agent, ...agent.restart() }
    },
    killHelper: async () => {
      await helper.kill9()
      fs.rmSync(socket, { force: true })
      helper = await startHelper()
    },
    runs: () => {
      const file = path.join(work, 'runs')
      return fs.existsSync(file) ? fs.readFileSync(file, 'utf8').trim().split('\n') : []
    },
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
