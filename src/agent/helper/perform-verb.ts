// One request of the agent, from its line to the line that answers it. Every one is answered or refused, with a code that stays and
// a sentence; agent.toml is read anew for each, so that nothing is begun that its owner has taken out.

import * as path from 'node:path'
import type { Clock } from '#platform/clock.ts'
import type { Owner } from '#platform/files.ts'
import type { Log } from '#platform/log.ts'
import type { Random } from '#platform/random.ts'
import { pathExists } from '#platform/paths.ts'
import { musterVersion } from '#platform/this-process.ts'
import type { Timers } from '#platform/timers.ts'
import { faultOfPath, type Trust } from '#platform/trusted-path.ts'
import { matchesSchema } from '#platform/json-schema.ts'
import type { AgentToml } from './agent-toml.ts'
import { checkKernelLog } from './kernel-log.ts'
import { openListedServices } from './listed-services.ts'
import { readAgentToml } from './read-agent-toml.ts'
import {
  argumentsFor,
  faultOfProgram,
  howToRun,
  onceUnit,
  runOnce,
  runReload,
  unitMark,
  userOf,
  type RunsAs,
} from './run-listed.ts'
import { openListedTasks } from './listed-tasks.ts'
import { orderFor, signedArguments, unsigned } from './overlay-orders.ts'
import { openOverlayGuard, type OverlayGuard } from './overlay/overlay-guard.ts'
import { openRunningChildren } from './running-children.ts'
import { servicesAsChildren } from './services-as-children.ts'
import { environmentFolder, servicesAsUnits } from './services-as-units.ts'
import type { TaskParts } from './tasks/open-tasks.ts'
import { openTurns } from './turns.ts'
import { isVerb, refused, Request, verbs, type AnswerOf, type Refused, type RequestOf, type Verb } from './verbs.ts'
import { openOutputWriter } from './write-output.ts'
import { openWrittenLists } from './written-lists.ts'

/** What the process gives a helper. */
export type HelperHost = {
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  readonly log: Log
  /** Whom it believes besides root: the user it runs as. */
  readonly trust: Trust
}

export type HelperConfig = {
  readonly agentToml: string
  /** Who may open the socket; null: the user of the helper. */
  readonly agentUser: Owner | null
  /** Where it keeps which lists it has written. */
  readonly stateFolder: string
  /** How often the services are compared with agent.toml. */
  readonly lookEveryMs?: number
  /** Where the environments of units are. */
  readonly environments?: string
  /** For tests: a machine cannot be restarted in one. */
  readonly reboot?: TaskParts['reboot']
  /** Where root lays down statement keys, where agent.toml says nothing else. */
  readonly statementKeys?: string | undefined
}

export type VerbPerformer = {
  /** Never rejects. */
  perform(line: string): Promise<string>
  /** What an earlier helper left of tasks is taken up. Never rejects. */
  takeUpTasks(): Promise<void>
  close(): Promise<void>
}

/** Each verb: what it answers. The toml is the one of this moment. */
type Verbs = { readonly [V in Verb]: (toml: AgentToml, body: RequestOf<V>) => Performed<V> | Promise<Performed<V>> }
type Performed<V extends Verb> = AnswerOf<V> | Refused

export const openVerbs = (
  { clock, timers, random, log, trust }: HelperHost,
  config: HelperConfig,
  runs: RunsAs = howToRun(trust),
): VerbPerformer => {
  const { agentToml, agentUser, stateFolder, lookEveryMs, environments = environmentFolder, reboot = null } = config
  const outputs = openOutputWriter(clock, random, trust, openWrittenLists(stateFolder, trust))
  const turns = openTurns(timers)
  const mark = unitMark(path.resolve(agentToml))
  const ending = new AbortController()
  const { signal: over } = ending
  const services = openListedServices(
    runs === 'unit'
      ? servicesAsUnits(mark, environments)
      : servicesAsChildren(timers, openRunningChildren(stateFolder, trust, log), log),
    () => servicesListed(agentToml, trust),
    turns,
    { timers, log },
    lookEveryMs,
  )

  const tasks = openListedTasks(
    { clock, timers, random, log, trust, agentUser, runs, mark, reboot },
    path.resolve(stateFolder),
  )
  const guard = openOverlayGuard({
    ...{ clock, random, log, trust },
    ...config,
    stateFolder: path.resolve(stateFolder),
  })

  /** By agent.toml as it is when the turn has come, not as it was when it was asked for. */
  const inTurn = <T>(
    kind: 'reload' | 'check',
    name: string,
    run: (toml: AgentToml) => T | Refused | Promise<T | Refused>,
  ): Promise<T | Refused> =>
    turns.take(kind, name, async () => {
      const read = readAgentToml(agentToml, trust)
      return read.kind === 'refused' ? read : run(read.toml)
    })

  const perform: Verbs = {
    hello: (toml) => helloOf(toml, guard, trust, null),
    'output.write': (toml, given) => outputs.write(toml, given),
    'output.remove': (toml, given) => outputs.remove(toml, given),
    // A second reload while one runs would be for files that the first may have read.
    reload: (_toml, { name }) =>
      inTurn('reload', name, async (toml) => {
        const reload = toml.reloads.get(name)
        if (reload === undefined) return refused('NOT_ALLOWED', `agent.toml lists no reload ${name}`)
        return (await runReload(name, reload, { runs, mark, over }, trust)) ?? {}
      }),
    'service.start': async (_toml, given) => {
      const outcome = await services.start(given.name, () => {
        const read = readAgentToml(agentToml, trust)
        return read.kind === 'refused' ? read : orderFor(read.toml, given, guard, agentUser, trust)
      })
      return typeof outcome === 'string' ? { outcome } : outcome
    },
    'service.stop': async (_toml, { name }) => (await services.stop(name)) ?? {},
    'service.status': async () => ({ services: [...(await services.status())] }),
    'check.run': (_toml, asked) => {
      const { name } = asked
      return inTurn('check', name, async (toml) => {
        const listed = toml.checks.get(name)
        if (listed === undefined) return refused('NOT_ALLOWED', `agent.toml lists no check ${name}`)
        const signed = signedArguments(toml, asked, guard)
        if ('code' in signed) return signed
        const unit = onceUnit(mark, 'check', name)
        if (listed.kind === 'kernel-log') return checkKernelLog(listed, { unit, runs, over })
        const words = argumentsFor(name, listed, signed.arguments)
        if ('code' in words) return words
        const user = userOf(name, listed, agentUser)
        if (user !== null && 'code' in user) return user
        const fault = faultOfProgram(listed.executable, trust)
        if (fault !== null) return fault
        const command = [listed.executable, ...words.words]
        const ran = await runOnce({ unit, command, user, withinMs: listed.withinMs, runs, over })
        return { exit_code: ran.code, timed_out: ran.timedOut, line: ran.lines.at(-1) ?? null, how: ran.how }
      })
    },
    'overlay.nonce': () => guard.nonce(),
    'overlay.take': (toml, { statement }) => {
      const taken = guard.take(toml, statement)
      return 'fault' in taken ? unsigned(taken) : taken
    },
    ...tasks.perform,
  }

  const answerOf = async <V extends Verb>(verb: V, body: unknown): Promise<Performed<Verb>> => {
    const schema = verbs[verb].request
    if (!matchesSchema(schema, body)) return refused('BAD_REQUEST', `That is not a request of ${verb}`)
    const read = readAgentToml(agentToml, trust)
    if (read.kind === 'refused') return verb === 'hello' ? helloOf(null, guard, trust, read.message) : read
    // The schema of this verb has just been checked.
    const call = perform[verb] as (toml: AgentToml, body: unknown) => Performed<V> | Promise<Performed<V>>
    return call(read.toml, body)
  }

  const answered = async (id: number, verb: Verb, body: unknown): Promise<string> => {
    try {
      const answer = await answerOf(verb, body)
      if (!('code' in answer) || !('kind' in answer)) return JSON.stringify({ id, answer })
      log.warn({ verb, code: answer.code }, answer.message)
      return refusalLine(id, answer)
    } catch (error) {
      log.error({ verb, err: error }, 'a request could not be carried out')
      return refusalLine(id, refused('NOT_DONE', error instanceof Error ? error.message : String(error)))
    }
  }
  return {
    perform: async (line) => {
      const request = requestIn(line)
      if (request === null) {
        return refusalLine(
          null,
          refused('BAD_REQUEST', 'That is not a request: {"id": 1, "verb": "hello", "body": {}}'),
        )
      }
      const { id, verb, body } = request
      if (!isVerb(verb)) {
        return refusalLine(id, refused('UNKNOWN_VERB', `The verbs are ${Object.keys(verbs).join(', ')}`))
      }
      return answered(id, verb, body)
    },
    takeUpTasks: async () => {
      try {
        const read = readAgentToml(agentToml, trust)
        if (read.kind === 'allowed') await tasks.takeUp(read.toml)
      } catch (error) {
        log.error({ err: error }, 'the tasks of an earlier helper could not be taken up')
      }
    },
    close: async () => {
      ending.abort()
      await Promise.all([services.close(), tasks.close()])
    },
  }
}

/** A file with an error in it starts nothing and ends nothing: an error is no decision. One that is missing lists nothing. */
const servicesListed = (agentToml: string, trust: Trust): AgentToml['services'] | null => {
  const read = readAgentToml(agentToml, trust)
  if (read.kind === 'allowed') return read.toml.services
  return pathExists(agentToml) ? null : new Map()
}

const requestIn = (line: string): { readonly id: number; readonly verb: string; readonly body: unknown } | null => {
  try {
    const request: unknown = JSON.parse(line)
    return matchesSchema(Request, request) ? request : null
  } catch {
    return null
  }
}

const longestMessage = 512

export const refusalLine = (id: number | null, { code, message }: Refused): string =>
  JSON.stringify({ id, refused: { code, message: message.slice(0, longestMessage) } })

/** What is wrong with a directory is said before anything is to be written there. */
const helloOf = (
  toml: AgentToml | null,
  guard: OverlayGuard,
  trust: Trust,
  fault: string | null,
): AnswerOf<'hello'> => ({
  version: musterVersion,
  by_hand: trust.uid !== 0,
  verbs: toml === null ? [] : allowedVerbs(toml, guard),
  node: toml?.node ?? null,
  outputs: (toml?.outputs ?? []).map(({ directory, names }) => ({
    directory,
    names: names === null ? null : [...names],
    fault: faultOfPath(directory, trust, { kind: 'folder', links: 'refused' }),
  })),
  reloads: [...(toml?.reloads.keys() ?? [])],
  services: [...(toml?.services.keys() ?? [])],
  checks: [...(toml?.checks.keys() ?? [])],
  ...(toml !== null && { overlays: guard.holds(toml) }),
  fault,
})

const allowedVerbs = (toml: AgentToml, guard: OverlayGuard): Verb[] => {
  const { node, programRoots, outputs, reloads, services, checks, tasks } = toml
  const startsSigned = services.size + checks.size > 0 && node !== null && guard.holds(toml) === 'signed'
  return [
    'hello',
    ...(outputs.length > 0 && node !== null && programRoots !== null
      ? (['output.write', 'output.remove'] as const)
      : []),
    ...(reloads.size > 0 ? (['reload'] as const) : []),
    ...(services.size > 0 ? (['service.start', 'service.stop', 'service.status'] as const) : []),
    ...(checks.size > 0 ? (['check.run'] as const) : []),
    ...(tasks !== null && node !== null
      ? (['task.nonce', 'task.learn', 'task.begin', 'task.ended', 'task.look', 'task.forget'] as const)
      : []),
    ...(startsSigned ? (['overlay.nonce', 'overlay.take'] as const) : []),
  ]
}
