// What the store commands share: which store they are about, progress and how a long one is stopped, and why one was refused.

import { ConfigProblem, readPlaneConfig, type PlaneConfig } from '#plane/config/config.ts'
import { copyRefusal, type CopyRefusal } from '#plane/store/copy/copy-refusal.ts'
import type { CopyProgress, CopyRun } from '#plane/store/copy/copy-run.ts'
import { stopSignal } from '#platform/signals.ts'
import { systemTimers } from '#platform/timers.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { exitCodes, type ExitCode } from '#cli/kit/exit-codes.ts'
import { Failure, usageFailure } from '#cli/kit/failure.ts'

export type StoreOptions = GlobalOptions & { readonly store?: string; readonly sealKey?: string }

/** `notDone`: what is said when it is refused. */
export const withStore = <T>(
  cli: Cli,
  options: StoreOptions,
  notDone: string,
  act: (config: PlaneConfig) => Promise<T>,
): Promise<T> => refusing(notDone, () => act(readPlaneConfig(options, cli.env)))

/** An error that could be expected becomes the failure of the command. */
export const refusing = async <T>(notDone: string, act: () => Promise<T>): Promise<T> => {
  try {
    return await act()
  } catch (error) {
    if (error instanceof ConfigProblem) throw usageFailure(`${error.message}.`)
    const refusal = copyRefusal(error)
    if (refusal === null) throw error
    const { code, detail, next } = refusal
    throw new Failure({ exit: exitOf(code), code, sentence: notDone, detail, next })
  }
}

const everyMs = { terminal: 200, log: 10_000 }

/** On a terminal one line that changes, elsewhere a line now and then: a long copy must not look dead. */
export const storeRun = (cli: Cli): CopyRun & { over(): void } => {
  let lastMs = cli.clock.monotonicMs()
  let shown = false
  const pauseMs = cli.err.isTerminal ? everyMs.terminal : everyMs.log
  const onProgress = ({ doing, done, total }: CopyProgress): void => {
    const nowMs = cli.clock.monotonicMs()
    if (nowMs - lastMs < pauseMs) return
    lastMs = nowMs
    const line = `${doing}: ${done} of ${total}`
    cli.err.write(cli.err.isTerminal ? `\r${line}\x1b[K` : `${line}\n`)
    shown = cli.err.isTerminal
  }
  const over = (): void => {
    if (shown) cli.err.write('\r\x1b[K')
    shown = false
  }
  // Real turns of the event loop, whichever timers the command has: a signal has to get through.
  return { clock: cli.clock, timers: systemTimers, stop: stopSignal(), onProgress, over }
}

const exitOf = (code: CopyRefusal['code']): ExitCode => {
  switch (code) {
    case 'BACKUP_UNKNOWN':
    case 'BACKUP_DAMAGED':
    case 'FILE_EXISTS':
    case 'FILE_UNUSABLE':
    case 'OTHER_DOMAIN':
    case 'SEALING_KEY_MISSING':
    case 'SEALING_KEY_WRONG':
      return exitCodes.usage
    case 'NO_STORE':
      return exitCodes.notFound
    case 'JOURNAL_BROKEN':
    case 'JOURNAL_UNREADABLE':
      return exitCodes.journalBroken
    case 'STORE_FAULT':
      return exitCodes.unavailable
    case 'DISK_FULL':
    case 'STORE_DAMAGED':
      return exitCodes.fault
    case 'NOT_PERMITTED':
      return exitCodes.notAllowed
    case 'STORE_IN_USE':
    case 'DATA_FOLDER_IN_USE':
    case 'STOPPED':
    case 'UPGRADE_UNFINISHED':
      return exitCodes.tryLater
    default:
      return exitCodes.refused
  }
}
