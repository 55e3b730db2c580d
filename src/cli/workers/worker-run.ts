// `muster worker run -- CMD`: keeps the certificate of a program fresh. The program starts once there is a certificate, gets our signals,
// and we end with it, as it did.

import { X509Certificate } from 'node:crypto'
import * as path from 'node:path'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { exitCodes, type ExitCode } from '#cli/kit/exit-codes.ts'
import { Failure, fillIn, usageFailure } from '#cli/kit/failure.ts'
import { readText } from '#cli/kit/arguments.ts'
import { printable } from '#cli/kit/printable.ts'
import { isoTime } from '#platform/clock.ts'
import { errno, makeFolder } from '#platform/files.ts'
import { startWrapped } from '#platform/wrapped-program.ts'
import { doublingWaitMs, sleep } from '#platform/timers.ts'
import {
  fileOf,
  heldIn,
  obtainCertificate,
  renewAtMs,
  standingOf,
  type HeldCertificate,
  type WorkerPlace,
} from './worker-certificate.ts'

export type RunOptions = GlobalOptions & {
  readonly plane: string
  readonly roots: string
  readonly tokenFile: string
  readonly folder: string
}

const longestRoots = 256 * 1024

export const workerRun = async (cli: Cli, options: RunOptions, words: readonly string[]): Promise<void> => {
  const [command, ...args] = words
  if (command === undefined) throw usageFailure('Which program?', 'muster worker run ... -- COMMAND ARGUMENT')
  makeOrRefuse(options.folder)
  const place: WorkerPlace = {
    url: options.plane,
    ca: await rootsIn(cli, options.roots),
    tokenFile: options.tokenFile,
    // The program may change its directory, and has the paths of what is in it.
    folder: path.resolve(options.folder),
  }
  const first = await firstCertificate(cli, place)
  const program = startWrapped(command, args, environment(place, first), (why) => say(cli, `${command}: ${why}`))
  const ended = new AbortController()
  const keeping = keepFresh(cli, place, first, ended.signal)
  const code = await program.ended
  ended.abort()
  await keeping
  cli.exit.finish(code as ExitCode)
}

/** Without a certificate no plane can be verified, and each try would only say that its own is self-signed. */
const rootsIn = async (cli: Cli, file: string): Promise<string> => {
  const text = await readText(cli, file, longestRoots)
  if (!hasCertificate(text))
    throw usageFailure(
      `There is no certificate in ${file === '-' ? 'what --roots reads from standard input' : file}.`,
      'Give --roots the roots of the domain, PEM: muster ca bundle > roots.pem',
    )
  return text
}

/** As TLS reads the file: what stands around the certificates does not matter. */
const hasCertificate = (text: string): boolean => {
  try {
    void new X509Certificate(text)
    return true
  } catch {
    return false
  }
}

/** Before the plane is asked: a token holds for the first key that it is brought with, and the key could not be kept. */
const makeOrRefuse = (folder: string): void => {
  try {
    makeFolder(folder, 0o700)
  } catch (error) {
    const isInTheWay = ['EEXIST', 'ENOTDIR'].includes(errno(error) ?? '')
    const why = isInTheWay
      ? 'a file is in its place or above it'
      : error instanceof Error
        ? error.message
        : String(error)
    throw usageFailure(`--folder ${folder} cannot be made: ${why}.`, 'Name a folder that is there, or that can be made')
  }
}

const environment = ({ folder }: WorkerPlace, { id }: HeldCertificate): Readonly<Record<string, string>> => ({
  MUSTER_WORKER_ID: id,
  MUSTER_WORKER_KEY: fileOf(folder, 'key'),
  MUSTER_WORKER_CERT: fileOf(folder, 'cert'),
  MUSTER_WORKER_ROOTS: fileOf(folder, 'roots'),
})

const say = (cli: Cli, text: string): void => cli.err.write(`muster worker: ${printable(text)}\n`)

const shortestWaitMs = 2000
const longestWaitMs = 300_000
/** Before the program has started a supervisor decides what follows. */
const firstTries = 6

/**
 * One that is in the first half of its life is good as it is, unless the plane says otherwise: a container was started again in its pod,
 * and does not wait for a plane that is away.
 */
const firstCertificate = async (cli: Cli, place: WorkerPlace): Promise<HeldCertificate> => {
  const held = heldIn(place)
  if (held !== null && cli.clock.nowMs() < renewAtMs(held)) {
    const standing = await standingOf(cli, place, held)
    if (standing.kind === 'unasked') say(cli, `started without asking the plane about its certificate: ${standing.why}`)
    if (standing.kind !== 'refused') return held
  }
  for (let tried = 1; ; tried++) {
    try {
      return await obtainCertificate(cli, place)
    } catch (error) {
      if (isRevoked(error)) throw notStarted(error, held?.id ?? 'ID')
      if (tried === firstTries || isFinal(error)) throw error
      const waitMs = waitAfter(error, tried)
      say(cli, `no certificate yet: ${reasonOf(error)}; again in ${Math.ceil(waitMs / 1000)} s`)
      await sleep(cli.timers, waitMs)
    }
  }
}

/** No later try changes it. */
const isFinal = (error: unknown): boolean => error instanceof Failure && error.code === 'USAGE'

const isRevoked = (error: unknown): error is Failure => error instanceof Failure && error.code === 'WORKER_REVOKED'

/** With an exit code that no program of its own is likely to have: a supervisor that starts it again and again can stop doing so. */
const notStarted = ({ code, message, detail, next }: Failure, id: string): Failure =>
  new Failure({
    exit: exitCodes.agentRefused,
    ...{ code, sentence: `${message} The program was not started.`, detail },
    next: next === null ? null : fillIn(next, { ID: id }),
  })

const waitAfter = (error: unknown, tried: number): number => {
  const asked = error instanceof Failure ? (error.retryAfterMs ?? 0) : 0
  return Math.min(longestWaitMs, Math.max(asked, doublingWaitMs(tried - 1, shortestWaitMs, longestWaitMs)))
}

/** A machine that slept is noticed within a minute: timers count only what was lived. */
const lookEveryMs = 60_000

const keepFresh = async (cli: Cli, place: WorkerPlace, first: HeldCertificate, ended: AbortSignal): Promise<void> => {
  let held = first
  let failed = 0
  let notBeforeMs = 0
  while (!ended.aborted) {
    const nowMs = cli.clock.nowMs()
    const dueMs = Math.max(renewAtMs(held), notBeforeMs) - nowMs
    if (dueMs > 0) {
      await untilEnded(cli, Math.min(dueMs, lookEveryMs), ended)
      continue
    }
    try {
      held = await obtainCertificate(cli, place)
      failed = 0
      notBeforeMs = cli.clock.nowMs() + shortestWaitMs
      say(cli, `certificate renewed, good until ${isoTime(held.notAfterMs)}`)
    } catch (error) {
      failed += 1
      const waitMs = waitAfter(error, failed)
      notBeforeMs = cli.clock.nowMs() + waitMs
      say(cli, `the certificate could not be renewed: ${reasonOf(error)}; again in ${Math.ceil(waitMs / 1000)} s`)
    }
  }
}

const untilEnded = (cli: Cli, ms: number, ended: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const finish = (): void => {
      cancel()
      ended.removeEventListener('abort', finish)
      resolve()
    }
    const cancel = cli.timers.after(ms, finish)
    ended.addEventListener('abort', finish)
  })

const reasonOf = (error: unknown): string => {
  if (error instanceof Failure)
    return `${error.code}, ${error.message}${error.detail === null ? '' : ` (${error.detail})`}`
  return error instanceof Error ? error.message : String(error)
}
