// A helper in the process of the test, on a host of its own, asked as an agent asks it.

import assert from 'node:assert/strict'
import * as path from 'node:path'
import { openVerbs, type HelperConfig } from '#agent/helper/perform-verb.ts'
import type { HelperCode, RequestOf, Verb } from '#agent/helper/verbs.ts'
import { systemClock, type Clock } from '#platform/clock.ts'
import { silentLog } from '#platform/log.ts'
import { systemRandom } from '#platform/random.ts'
import { systemTimers } from '#platform/timers.ts'
import type { Trust } from '#platform/trusted-path.ts'
import { cleanup, type Scope } from '../process/cleanup.ts'
import { hostOfPrograms, type ProgramHost } from './host-of-programs.ts'

/** Of who runs the test, as a helper trusts that was started by hand. */
export const testTrust: Trust = { uid: process.geteuid?.() ?? 0, stickyFolders: true }

export type Said = { readonly answer: unknown } | { readonly code: HelperCode; readonly message: string }

export type HelpedHost = ProgramHost & {
  ask<V extends Verb>(verb: V, body: RequestOf<V>): Promise<Said>
  /** Another helper on the same host, as after a restart. */
  again(): HelpedHost
  close(): Promise<void>
}

export const helpedHost = (
  t: Scope,
  inside?: string,
  clock: Clock = systemClock,
  host = hostOfPrograms(t, systemClock.nowMs(), inside),
  config: Pick<HelperConfig, 'reboot' | 'statementKeys'> = {},
): HelpedHost => {
  const parts = { clock, timers: systemTimers, random: systemRandom, log: silentLog, trust: testTrust }
  const verbs = openVerbs(
    parts,
    { agentToml: host.agentToml, agentUser: null, stateFolder: path.join(host.folder, 'state'), ...config },
    'child',
  )
  cleanup(t, () => verbs.close())
  return {
    ...host,
    ask: async (verb, body) => {
      const reply = JSON.parse(await verbs.perform(JSON.stringify({ id: 1, verb, body }))) as {
        answer?: unknown
        refused?: { code: HelperCode; message: string }
      }
      return reply.refused ?? { answer: reply.answer }
    },
    again: () => helpedHost(t, inside, clock, host, config),
    close: () => verbs.close(),
  }
}

export const refusedWith = (said: Said, code: HelperCode, message: RegExp): void => {
  assert.ok('code' in said, `${code} expected, done: ${JSON.stringify(said)}`)
  assert.equal(said.code, code, said.message)
  assert.match(said.message, message)
}

export const done = (said: Said): unknown => {
  assert.ok('answer' in said, JSON.stringify(said))
  return said.answer
}
