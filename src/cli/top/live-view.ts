// The live part of `muster top`: looks, draws, and waits, until a key or a signal ends it.

import { stopSignal } from '#platform/signals.ts'
import { openTerminal } from '#platform/terminal.ts'
import { sleep } from '#platform/timers.ts'
import type { Cli } from '#cli/kit/cli.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { Failure } from '#cli/kit/failure.ts'
import { paintFor } from '#cli/kit/print.ts'
import type { FleetView, FleetWatch } from './fleet-view.ts'
import { renderFrame, type Trouble } from './frame.ts'

/** The screen is as it was before when this resolves or rejects. */
export const showUntilQuit = async (cli: Cli, watch: FleetWatch, everyMs: number, every: string): Promise<void> => {
  // What is wrong from the start is said on the usual screen.
  let view = await watch.look()
  let trouble: Trouble = null
  let lookedMs = cli.clock.nowMs()
  const quit = openQuit()
  const terminal = openTerminal()
  try {
    stopSignal().addEventListener('abort', quit.now)
    terminal.onKey((key) => {
      if (key === 'q' || key === 'Q' || key === ctrlC) quit.now()
    })
    terminal.onGone(quit.now)
    const paint = paintFor(cli.out, cli.env)
    const draw = (): void => {
      const facts = { view, trouble, remark: `every ${every}, q quits`, nowMs: cli.clock.nowMs() }
      terminal.show(renderFrame(facts, terminal.size(), paint))
    }
    terminal.onResize(draw)
    for (;;) {
      draw()
      const paused = await Promise.race([sleep(cli.timers, everyMs, 'background'), quit.asked])
      if (paused === 'quit') return
      const looked = await Promise.race([lookOrFailure(watch), quit.asked])
      if (looked === 'quit') return
      if (looked instanceof Failure) {
        trouble = { sentence: looked.message, sinceMs: lookedMs }
      } else {
        view = looked
        trouble = null
        lookedMs = cli.clock.nowMs()
      }
    }
  } finally {
    terminal.close()
  }
}

const ctrlC = '\x03'

const openQuit = (): { readonly now: () => void; readonly asked: Promise<'quit'> } => {
  const { promise, resolve } = Promise.withResolvers<'quit'>()
  return { now: () => resolve('quit'), asked: promise }
}

/** A plane that restarts is waited for; a key that is refused ends it. */
const lookOrFailure = async (watch: FleetWatch): Promise<FleetView | Failure> => {
  try {
    return await watch.look()
  } catch (error) {
    const waits = error instanceof Failure && error.exit !== exitCodes.notAllowed && error.exit !== exitCodes.usage
    if (!waits) throw error
    return error
  }
}
