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
import { initialisePlane } from '#plane/foundation/foundation.ts'
import { openLog, type Log } from '#platform/log.ts'
import { holdPort, type HeldPort } from '#platform/http-server.ts'
import { startOwnChild, type OwnChild } from '#platform/own-child.ts'
import { stopSignal } from '#platform/signals.ts'
import { sleep } from '#platform/timers.ts'
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
  try {
    const first = Array.from({ length: config.replicas }, (_, at) => ({ number: at + 1, child: start(at + 1) }))
    const ready = await Promise.all(first.map(({ number, child }) => readyOf(number, child)))
    if (!stop.aborted) {
      const body = bannerOf(ready, { firstRun, rootKeyFile })
      const isDefault = isDefaultData(values.data)
      printer(cli, options).item(body, () =>
        planeBanner(body, cli.program, { isDefault, shared: true, file: file?.file ?? null }),
      )
    }
    await Promise.all(first.map(({ number, child }) => keepRunning(cli, log, stop, number, child, start)))
  } catch (error) {
    if (!stop.aborted) throw error
  } finally {
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

const readyOf = async (number: number, child: OwnChild): Promise<PlaneReadyBody> => {
  const line = await child.firstLine.catch(async (cause: unknown) => {
    const detail = `plane ${number} ended ${await child.ended} before it was ready`
    throw new Failure({
      exit: exitCodes.misconfigured,
      code: 'REPLICA_ENDED',
      sentence: 'The plane cannot run like this.',
      detail: cause instanceof Error ? detail : String(cause),
      next: 'What it said before it ended is above',
    })
  })
  return JSON.parse(line) as PlaneReadyBody
}

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
  const stopped = new Promise<'stopped'>((resolve) => {
    if (stop.aborted) resolve('stopped')
    stop.addEventListener('abort', () => resolve('stopped'), { once: true })
  })
  let child = first
  for (let deaths = 0; ;) {
    const sinceMs = clock.monotonicMs()
    const how = await Promise.race([stopped, child.ended])
    if (stop.aborted) return
    deaths = clock.monotonicMs() - sinceMs >= settledAfterMs ? 1 : deaths + 1
    const againMs = restartAfterMs(deaths)
    log.error({ replica: number, ended: how, again_in_ms: againMs }, 'a plane has ended and is started again')
    await Promise.race([stopped, sleep(timers, againMs)])
    if (stop.aborted) return
    child = start(number)
  }
}

const firstMs = 1000
const longestMs = 30_000

/** How long a process that ended is left alone before it is started again; `deaths`: in a row. */
export const restartAfterMs = (deaths: number): number => Math.min(longestMs, firstMs * 2 ** (deaths - 1))
