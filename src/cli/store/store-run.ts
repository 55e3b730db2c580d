// What the long store commands share: the configuration of the store they are about, progress, and how they are stopped.

import { planeConfig, type PlaneConfig } from '#plane/config/config.ts'
import type { TransferProgress, TransferRun } from '#plane/store/copy/transfer-run.ts'
import { stopSignal } from '#platform/signals.ts'
import { systemTimers } from '#platform/timers.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { storeTrouble } from './store-trouble.ts'

export type StoreOptions = GlobalOptions & { readonly store?: string; readonly sealKey?: string }

/** `notDone`: what is said when it is refused. */
export const withStore = async <T>(
  cli: Cli,
  options: StoreOptions,
  notDone: string,
  act: (config: PlaneConfig) => Promise<T>,
): Promise<T> => {
  try {
    return await act(planeConfig(options, cli.env))
  } catch (error) {
    throw storeTrouble(error, notDone)
  }
}

const everyMs = { terminal: 200, log: 10_000 }

/** On a terminal one line that changes, elsewhere a line now and then: a long export must not look dead. */
export const storeRun = (cli: Cli): TransferRun & { over(): void } => {
  let lastMs = cli.clock.monotonicMs()
  let shown = false
  const pauseMs = cli.err.isTerminal ? everyMs.terminal : everyMs.log
  const onProgress = ({ doing, done, total }: TransferProgress): void => {
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
  // Real turns of the event loop: whatever the command's own timers are, a signal has to get through.
  return { timers: systemTimers, stop: stopSignal(), onProgress, over }
}
