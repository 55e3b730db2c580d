// Services as children of the agent, restarted when they end, with a growing delay. They end with the agent. When the agent is
// killed, the next one finds them by the file that records them and adopts them: no service runs twice.

import * as path from 'node:path'
import type { AgentCore } from '#agent/core/agent-parts.ts'
import { makeFolder, userName } from '#platform/files.ts'
import { findProgram } from '#platform/run-program.ts'
import { stillRuns, type ProcessMark } from '#platform/process-mark.ts'
import {
  adoptServiceProcess,
  killProcess,
  logEnd,
  logLength,
  processesWith,
  startServiceProcess,
  trimLog,
  type Ending,
  type ServiceProcess,
} from '#platform/service-process.ts'
import { doublingWaitMs, type Cancel } from '#platform/timers.ts'
import { overlayFolder } from './apply-files.ts'
import { lastLines, readBytes } from './last-lines.ts'
import { readRunning, writeRunning } from './running-file.ts'
import {
  failsAfter,
  settledAfterMs,
  stopWithinMs,
  type RunningService,
  type ServiceRunner,
  type ServiceState,
} from './service-runner.ts'
import { isStartedAs, type WantedService } from './wanted-services.ts'

type Life = {
  readonly name: string
  readonly digest: string
  /** Null: adopted, and not asked for by this agent yet. */
  wanted: { readonly service: WantedService; readonly env: Readonly<Record<string, string>> } | null
  process: ServiceProcess | null
  bornMs: number
  /** In a row. */
  deaths: number
  restarts: number
  /** How it last ended; null: it has not. */
  ending: Ending | null
  /** It has ended, and its restart policy lets it be. */
  rests: boolean
  /** Where in its log it begins. */
  readonly logFrom: number
  over: boolean
  cancelRestart: Cancel
}

const firstRestartMs = 500
const longestRestartMs = 60_000
const longestLog = 1 << 20

const restartAfterMs = (deaths: number): number => doublingWaitMs(deaths - 1, firstRestartMs, longestRestartMs)

export const openSupervisor = (
  { clock, timers, log }: Pick<AgentCore, 'clock' | 'timers' | 'log'>,
  stateFolder: string,
  graceMs = stopWithinMs,
): ServiceRunner => {
  const folder = overlayFolder(stateFolder)
  const lives = new Map<string, Life>()
  let isClosed = false
  const logOf = (name: string): string => path.join(folder, 'log', `${name}.log`)

  const note = (): void => {
    const running = [...lives.values()].flatMap(({ name, digest, process }) =>
      process?.mark === null || process?.mark === undefined ? [] : [{ name, digest, ...process.mark }],
    )
    try {
      writeRunning(folder, running)
    } catch (error) {
      log.warn({ err: error }, 'the list of running services could not be written')
    }
  }
  const watch = (life: Life, process: ServiceProcess): void => {
    life.process = process
    life.bornMs = clock.monotonicMs()
    note()
    void process.ended.then((ending) => died(life, process, ending))
  }
  const died = (life: Life, process: ServiceProcess, ending: Ending): void => {
    if (life.process !== process) return
    life.process = null
    life.ending = ending
    if (life.over) return
    const lasted = clock.monotonicMs() - life.bornMs >= settledAfterMs
    // What cannot be started is not going to be by itself.
    life.deaths = Math.max(lasted ? 1 : life.deaths + 1, ending.started ? 1 : failsAfter)
    note()
    const restart = life.wanted?.service.terms.restart ?? 'always'
    if (restart === 'never' || (restart === 'on-failure' && ending.code === 0)) {
      life.rests = true
      log.info({ service: life.name, how: ending.words }, 'a service has ended, and is left so')
      return
    }
    again(life, ending.words)
  }
  const again = (life: Life, how: string): void => {
    const waitMs = restartAfterMs(life.deaths)
    log.warn({ service: life.name, how, waitMs }, 'a service has ended; it is started again')
    life.cancelRestart = timers.after(waitMs, () => begin(life), 'background')
  }
  const begin = (life: Life): void => {
    if (isClosed || life.over || life.process !== null || life.wanted === null) return
    if (life.deaths > 0) life.restarts += 1
    const { service, env } = life.wanted
    const { environment, workingDirectory } = service.terms
    try {
      makeFolder(path.join(folder, 'log'), 0o700)
      const command = withinLimits(service)
      const started = { command, env: { ...env, ...environment }, workingDirectory, logFile: logOf(life.name) }
      watch(life, startServiceProcess(started))
    } catch (error) {
      log.warn({ service: life.name, err: error }, 'a service could not be started')
      life.deaths += 1
      life.ending = { started: false, code: null, words: `could not be started: ${messageOf(error)}` }
      life.cancelRestart = timers.after(restartAfterMs(life.deaths), () => begin(life), 'background')
    }
  }
  const end = async (life: Life): Promise<void> => {
    life.over = true
    life.cancelRestart()
    await life.process?.stop(graceMs)
    if (lives.get(life.name) === life) lives.delete(life.name)
    note()
  }
  const newLife = (name: string, digest: string): Life => {
    const life: Life = {
      name,
      digest,
      wanted: null,
      process: null,
      bornMs: clock.monotonicMs(),
      deaths: 0,
      restarts: 0,
      ending: null,
      rests: false,
      logFrom: logLength(logOf(name)),
      over: false,
      cancelRestart: () => {},
    }
    lives.set(name, life)
    return life
  }
  const stateOf = ({ process, deaths, bornMs, rests, ending }: Life): ServiceState => {
    if (rests) return ending?.code === 0 ? 'ended' : 'failed'
    const alive = process !== null && process.running()
    if (alive && (deaths < failsAfter || clock.monotonicMs() - bornMs >= settledAfterMs)) return 'running'
    return deaths < failsAfter ? 'starting' : 'failed'
  }

  for (const { name, digest, pid, birth } of adoptable(folder, stateFolder)) {
    log.info({ service: name, pid }, 'adopted a service of an earlier agent')
    watch(newLife(name, digest), adoptServiceProcess({ pid, birth }))
  }

  return {
    kind: 'supervised',
    lookEveryMs: 1_000,
    services: () => {
      for (const name of lives.keys()) trimLog(logOf(name), longestLog, true)
      return Promise.resolve(
        [...lives.values()].map((life): RunningService => {
          const state = stateOf(life)
          const isWrong = state === 'failed' || state === 'starting'
          const environment = life.wanted?.service.terms.environment ?? {}
          return {
            ...{ name: life.name, digest: life.digest, state, restarts: life.restarts },
            pid: life.process?.mark?.pid ?? null,
            error: isWrong ? (life.ending?.words ?? null) : null,
            output: isWrong ? lastLines(logEnd(logOf(life.name), life.logFrom, readBytes), environment) : [],
            unapplied: life.wanted === null ? [] : unappliedOf(life.wanted.service),
          }
        }),
      )
    },
    ensure: async (service, env) => {
      const { user } = service.terms
      // Never as another user than asked for.
      if (user !== null && user !== userName())
        throw new Error(`it has to run as ${user}: that takes muster-agent-helper, or systemd`)
      const before = lives.get(service.name)
      if (before !== undefined && isStartedAs(before.digest, service)) {
        // The next time it is started it learns where it belongs by then.
        const wasOrphan = before.wanted === null
        before.wanted = { service, env }
        if (wasOrphan && before.process === null && !before.rests) begin(before)
        return 'kept'
      }
      if (before !== undefined) await end(before)
      const life = newLife(service.name, service.digest)
      life.wanted = { service, env }
      begin(life)
      return 'started'
    },
    stop: async (names) => {
      const ending = names.flatMap((name) => lives.get(name) ?? [])
      await Promise.all(ending.map(end))
    },
    close: async () => {
      isClosed = true
      await Promise.all([...lives.values()].map(end))
    },
  }
}

/** What was written down and still runs. What runs and was not written down, for want of a moment or of room, is ended. */
const adoptable = (
  folder: string,
  stateFolder: string,
): readonly (ProcessMark & { name: string; digest: string })[] => {
  const known = readRunning(folder).filter(({ birth, ...mark }) => birth !== null && stillRuns({ ...mark, birth }))
  for (const { mark, group } of processesWith(`MUSTER_OVERLAY=${currentOf(stateFolder)}`)) {
    if (!known.some(({ pid }) => pid === group)) killProcess(mark)
  }
  return known
}

const currentOf = (stateFolder: string): string => path.join(overlayFolder(stateFolder), 'current')

/** A child can be given a limit on open files. Memory and processors need a control group, which the agent may not make. */
const withinLimits = ({ command, terms }: WantedService): readonly string[] => {
  const prlimit = terms.openFiles === null ? null : findProgram('prlimit')
  return prlimit === null ? command : [prlimit, `--nofile=${terms.openFiles}:${terms.openFiles}`, '--', ...command]
}

const unappliedOf = ({ terms }: WantedService): readonly string[] => [
  ...(terms.memoryBytes === null ? [] : ['limits.memoryBytes']),
  ...(terms.cpus === null ? [] : ['limits.cpus']),
  ...(terms.openFiles === null || findProgram('prlimit') !== null ? [] : ['limits.openFiles']),
]

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
