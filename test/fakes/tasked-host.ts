// A host that takes tasks: a helper in the process of the test, the keys that root pinned there, and the plane that signs.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import type { HelperConfig } from '#agent/helper/perform-verb.ts'
import { readRefusal, type HostResult } from '#agent/helper/tasks/task-verbs.ts'
import type { AnswerOf } from '#agent/helper/verbs.ts'
import type { TaskEnvelope } from '#wire/core/task-statements.ts'
import type { TaskFault } from '#wire/tasks/task-faults.ts'
import { parseStatement } from '#wire/core/statement.ts'
import { eventually } from '../process/eventually.ts'
import type { Scope } from '../process/cleanup.ts'
import { done, helpedHost, refusedWith, type HelpedHost, type Said } from './helped-host.ts'
import { manualClock, type ManualClock } from './manual-clock.ts'
import { taskAuthority, type TaskAuthority } from './signed-tasks.ts'

/** Programs are run as another user where the test may. */
export const programUser = process.geteuid?.() === 0 ? 'nobody' : String(process.geteuid?.() ?? 0)

export type TaskedHost = {
  readonly host: HelpedHost
  readonly authority: TaskAuthority
  readonly clock: ManualClock
  /** A program of the host that others cannot change. */
  script(name: string, text: string): string
  /** Beside what is always there: the keys and what is allowed. */
  list(toml: string): void
  /** The helper has a statement: it has asked for one with its nonce. */
  learn(change?: Parameters<TaskAuthority['statement']>[0]): Promise<void>
  begin(task: string, statement?: string | null, file?: string): Promise<Said>
  /** Begins it, waits for its end and has its result forgotten. */
  carryOut(change: Partial<TaskEnvelope>, file?: string): Promise<HostResult>
  ended(id: string): Promise<HostResult>
  look(): Promise<AnswerOf<'task.look'>>
  /** Another helper on the same host; the one before is closed. */
  restart(): Promise<TaskedHost>
}

export const idOf = (task: string): string => parseStatement('task', task)?.value.id ?? assert.fail('not a task')

export const refusedAs = (said: Said, fault: TaskFault): void => {
  refusedWith(said, 'TASK_REFUSED', /./)
  if ('message' in said) assert.equal(readRefusal(said.message).fault, fault, said.message)
}

const allTypes = ['run', 'service', 'fetch-file', 'reboot', 'cleanup', 'rotate-recovery', 'x-greet']

export const taskedHost = (t: Scope, config: Pick<HelperConfig, 'reboot'> = {}): TaskedHost => {
  const clock = manualClock(Date.UTC(2027, 0, 1))
  const authority = taskAuthority(clock.nowMs())
  const host = helpedHost(t, undefined, clock, undefined, config)
  fs.chmodSync(host.folder, 0o755)
  fs.writeFileSync(path.join(host.folder, 'statement-keys.pem'), authority.pem, { mode: 0o644 })
  fs.mkdirSync(path.join(host.folder, 'types'), { mode: 0o755 })
  const tasked = onHost(host, authority, clock)
  tasked.list('')
  return tasked
}

const onHost = (host: HelpedHost, authority: TaskAuthority, clock: ManualClock): TaskedHost => {
  const begin: TaskedHost['begin'] = (task, statement = null, file) =>
    host.ask('task.begin', { statement, task, ...(file === undefined ? {} : { file }) })
  const look = async (): Promise<AnswerOf<'task.look'>> =>
    done(await host.ask('task.look', {})) as AnswerOf<'task.look'>
  const ended = (id: string): Promise<HostResult> =>
    eventually(`${id} to end`, async () => (await look()).tasks.find((task) => task.id === id)?.result)
  return {
    host,
    authority,
    clock,
    script: (name, text) => {
      const file = path.join(host.folder, name)
      fs.writeFileSync(file, `#!/bin/sh\n${text}\n`, { mode: 0o755 })
      fs.chmodSync(file, 0o755)
      return file
    },
    list: (toml) =>
      host.allow(`[tasks]
statement_keys = "${host.folder}/statement-keys.pem"
types_folder = "${host.folder}/types"
allow = ${JSON.stringify(allTypes)}
${toml}`),
    learn: async (change = {}) => {
      const { nonce } = done(await host.ask('task.nonce', {})) as { nonce: string }
      // Any task brings the statement along: this one is refused for its node.
      refusedAs(
        await begin(authority.task({ node: 'gpu-002' }), authority.statement({ nonce, ...change })),
        'WRONG_NODE',
      )
    },
    begin,
    carryOut: async (change, file) => {
      const task = authority.task(change)
      assert.deepEqual(done(await begin(task, null, file)), { outcome: 'begun' })
      const result = await ended(idOf(task))
      done(await host.ask('task.forget', { id: idOf(task) }))
      return result
    },
    ended,
    look,
    restart: async () => {
      await host.close()
      return onHost(host.again(), authority, clock)
    },
  }
}
