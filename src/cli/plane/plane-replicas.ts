// Several replicas on one machine, on the same ports: this process makes the domain if necessary, settles the ports, starts the
// replicas and restarts any that ends. It serves no calls.

import {
  planeEnvironment,
  replicaVariable,
  type GivenConfig,
  type PlaneConfig,
  type PlaneValues,
} from '#plane/config/config.ts'
import type { ListenAddress } from '#plane/config/settings.ts'
import { initialisePlane } from '#plane/foundation/initialise-plane.ts'
import { openLog, type Log } from '#platform/log.ts'
import { holdPort, type HeldPort } from '#platform/http-server.ts'
import { startOwnChild, type OwnChild } from '#platform/own-child.ts'
import { stopSignal } from '#platform/signals.ts'
import { doublingWaitMs, sleep } from '#platform/timers.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { Failure } from '#cli/kit/failure.ts'
import { isDefaultData, planeBanner, type PlaneReadyBody } from './plane-banner.ts'
import { printer } from '#cli/kit/print.ts'

/** Longer than a plane takes to let go of its callers. */
const stopWithinMs = 20_000
const settledAfterMs = 60_000

/** Returns when all have stopped. */
export const runReplicas = async (
  cli: Cli,
  options: GlobalOptions,
  config: PlaneConfig,
  { values, file }: Pick<GivenConfig, 'values' | 'file'>,
): Promise<void> => {
  const stop = stopSignal()
  const log = openLog(config, 'plane')
  // First, and in this process: a fault of the database or the keys is then reported once.
  // The ports before that: a first start that fails must not leave a domain behind.
  const ports = await settledPorts(config)
  const { firstRun, rootKeyFile } = await initialisePlane({ ...config, replicas: 1 }, log)
  const env = childEnvironment(cli, values, ports)
  const children = new Set<OwnChild>()
  const start = (number: number): OwnChild => {
    const child = startOwnChild(['plane', '-o', 'json'], {
      env: { ...env, [replicaVariable]: String(number) },
      input: 'left-open',
      logFile: null,
    })
    children.add(child)
    void child.ended.then(() => children.delete(child))
    return child
  }
  const over = new AbortController()
  const ends = AbortSignal.any([stop, over.signal])
  try {
    const numbers = Array.from({ length: config.replicas }, (_, at) => at + 1)
    const first = await Promise.all(numbers.map((number) => untilReady(cli, log, ends, number, start)))
    if (!stop.aborted) {
      const body = bannerOf(
        first.map(({ ready }) => ready),
        { firstRun, rootKeyFile },
      )
      const isDefault = isDefaultData(values.data)
      printer(cli, options).item(body, () =>
        planeBanner(body, cli.program, { isDefault, shared: true, file: file?.file ?? null }),
      )
    }
    await Promise.all(first.map(({ number, child }) => keepRunning(cli, log, stop, number, child, start)))
  } catch (error) {
    if (!stop.aborted) throw error
  } finally {
    over.abort()
    await Promise.all([...children].map((child) => child.stop(stopWithinMs)))
  }
}

const childEnvironment = (
  cli: Cli,
  values: PlaneValues,
  ports: Readonly<Record<string, string>>,
): Record<string, string> => {
  const given = { ...cli.env, ...planeEnvironment(values), ...ports, MUSTER_REPLICAS: '1' }
  return Object.fromEntries(Object.entries(given).filter((entry): entry is [string, string] => entry[1] !== undefined))
}

/** A port that is taken is found now: replicas that share their ports would otherwise share it with another program of this user. */
const settledPorts = async (config: PlaneConfig): Promise<Readonly<Record<string, string>>> => {
  const held: HeldPort[] = []
  const settled = async ({ host, port }: ListenAddress): Promise<string> => {
    const taken = await holdPort(host, port)
    held.push(taken)
    return `${host.includes(':') ? `[${host}]` : host}:${taken.port}`
  }
  try {
    return {
      MUSTER_NODE_LISTEN: await settled(config.nodeListen),
      MUSTER_RECOVERY_LISTEN: await settled(config.recoveryListen),
      MUSTER_OPERATOR_LISTEN: await settled(config.operatorListen),
      MUSTER_STATUS_LISTEN: config.statusListen === null ? 'off' : await settled(config.statusListen),
    }
  } finally {
    await Promise.all(held.map((port) => port.release()))
  }
}

/** A database that fails over is back long before. */
const firstTries = 5

/**
 * A replica that cannot reach the database while it starts says `try later`. It is started again, like one that ends later: the
 * exit code of this process would otherwise keep a service manager from starting the plane ever again.
 */
const untilReady = async (
  cli: Pick<Cli, 'timers'>,
  log: Log,
  ends: AbortSignal,
  number: number,
  start: (number: number) => OwnChild,
): Promise<{ readonly number: number; readonly child: OwnChild; readonly ready: PlaneReadyBody }> => {
  for (let tries = 1; ; tries++) {
    const child = start(number)
    const line = await child.firstLine.catch(() => null)
    if (line !== null) return { number, child, ready: JSON.parse(line) as PlaneReadyBody }
    const { how, code } = await child.ended
    const later = code === exitCodes.tryLater
    if (ends.aborted || !later || tries === firstTries) throw replicaEnded(number, how, later)
    const againMs = restartAfterMs(tries)
    log.warn({ replica: number, ended: how, again_in_ms: againMs }, 'a plane could not start yet and is started again')
    await Promise.race([aborted(ends), sleep(cli.timers, againMs)])
    if (ends.aborted) throw replicaEnded(number, how, later)
  }
}

const replicaEnded = (number: number, how: string, later: boolean): Failure =>
  new Failure({
    exit: later ? exitCodes.tryLater : exitCodes.misconfigured,
    code: 'REPLICA_ENDED',
    sentence: later ? 'The plane cannot run now.' : 'The plane cannot run like this.',
    detail: `plane ${number} ended ${how} before it was ready`,
    next: 'What it said before it ended is above',
  })

const bannerOf = (
  ready: readonly PlaneReadyBody[],
  { firstRun, rootKeyFile }: { readonly firstRun: boolean; readonly rootKeyFile: string | null },
): PlaneReadyBody => {
  const [any] = ready
  if (any === undefined) throw new Error('there is no plane')
  // The one that has the socket which commands look for.
  const body = ready.find(({ socket }) => socket.endsWith('/operator.sock')) ?? any
  const offline = rootKeyFile === null ? [] : [`the root key is in ${rootKeyFile}: take it offline now`]
  return { ...body, first_run: firstRun, replicas: ready.length, warnings: [...body.warnings, ...offline] }
}

/** Until it is to stop. */
const keepRunning = async (
  { clock, timers }: Pick<Cli, 'clock' | 'timers'>,
  log: Log,
  stop: AbortSignal,
  number: number,
  first: OwnChild,
  start: (number: number) => OwnChild,
): Promise<void> => {
  const stopped = aborted(stop)
  let child = first
  for (let deaths = 0; ;) {
    const sinceMs = clock.monotonicMs()
    const end = await Promise.race([stopped, child.ended])
    if (end === undefined || stop.aborted) return
    deaths = clock.monotonicMs() - sinceMs >= settledAfterMs ? 1 : deaths + 1
    const againMs = restartAfterMs(deaths)
    log.error({ replica: number, ended: end.how, again_in_ms: againMs }, 'a plane has ended and is started again')
    await Promise.race([stopped, sleep(timers, againMs)])
    if (stop.aborted) return
    child = start(number)
  }
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })

const firstMs = 1000
const longestMs = 30_000

/** How long a process that ended is left alone before it is started again; `deaths`: in a row. */
export const restartAfterMs = (deaths: number): number => doublingWaitMs(deaths - 1, firstMs, longestMs)
