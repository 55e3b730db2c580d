// A real agent in a process of its own, with a state folder of its own.

import * as path from 'node:path'
import { startedCommand, startChild, type Child, type ChildOptions } from './child.ts'
import type { Scope } from './cleanup.ts'
import { musterHere } from './muster-here.ts'
import { runMuster, type Ran } from './run-muster.ts'
import { tempFolder } from './temp-folder.ts'

export type AgentOptions = Omit<ChildOptions, 'input'> & {
  readonly state?: string
  /** The join string; left out where the state folder already holds an identity. Handed over on standard input. */
  readonly join?: string
  readonly args?: readonly string[]
}

export type Agent = Child & {
  readonly state: string
  status(): Promise<Ran>
  /** After `stop` or `kill9`: the same state folder, without the join string. */
  restart(changes?: AgentOptions): Agent
}

export const startAgent = (t: Scope, options: AgentOptions): Agent => {
  const state = options.state ?? path.join(tempFolder(t), 'state')
  const join = options.join === undefined ? [] : ['--join-file', '-']
  const args = ['agent', 'run', '--state', state, ...join, ...(options.args ?? [])]
  const child = startChild(t, options.command ?? startedCommand, args, {
    ...options,
    input: options.join === undefined ? '' : `${options.join}\n`,
  })
  return {
    ...child,
    state,
    status() {
      const args = ['agent', 'status', '--state', state, '-o', 'json']
      const env = options.env ?? {}
      // A clock that is moved by a library is not the one of this process.
      return env['LD_PRELOAD'] === undefined ? musterHere(args, { env }) : runMuster(args, { env })
    },
    restart(changes = {}) {
      const { join: _used, ...again } = options
      return startAgent(t, { ...again, state, ...changes })
    },
  }
}
