// `muster top`: the fleet at a glance, until `q`.

import type { Command } from 'commander'
import { isInteractive } from '#platform/terminal.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { durationOption } from '#cli/kit/arguments.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { documented, performs } from '#cli/kit/verb.ts'
import { watchFleet } from './fleet-view.ts'
import { renderFrame } from './frame.ts'
import { showUntilQuit } from './live-view.ts'

export const declareTop = (top: Command, cli: Cli): void => {
  documented(top, [
    ['muster top', 'q quits, Ctrl-Z stops it until fg'],
    ['muster top --every 10s', 'over a slow link'],
    ['muster top --once', 'one frame, for a script or a report'],
    ['muster top --key-file viewer.key', "a viewer's key is enough"],
  ])
    .option('--every <duration>', 'how often to look, from 1s to 1d', '2s')
    .option('--once', 'print one frame and end; so it does where it is not on a terminal')
  performs(cli, top, showTop)
}

type TopOptions = GlobalOptions & { readonly every: string; readonly once?: boolean }

const shortestMs = 1000
const longestMs = 24 * 3600 * 1000
/** Enough for everything, where no terminal says how much there is. */
const printedRows = 50

const showTop = async (cli: Cli, options: TopOptions): Promise<void> => {
  const everyMs = durationOption('--every', options.every)
  if (everyMs < shortestMs)
    throw usageFailure(`--every ${options.every} is too often.`, 'Look every second at most: --every 1s')
  if (everyMs > longestMs)
    throw usageFailure(`--every ${options.every} is too seldom.`, 'Look every day at least: --every 1d')
  const plane = connect(cli, options)
  const watch = await watchFleet(plane, cli.clock)
  if (options.once !== true && options.output === 'table' && isInteractive(cli.env['TERM'])) {
    await showUntilQuit(cli, watch, everyMs, options.every)
    return plane.close()
  }
  const view = await watch.look()
  const size = { columns: cli.out.columns, rows: printedRows }
  printer(cli, options).answer(view, (paint) =>
    renderFrame({ view, trouble: null, remark: '', nowMs: cli.clock.nowMs() }, size, paint),
  )
}
