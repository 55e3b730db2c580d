// The whole terminal, for a command that shows something until it is stopped. What it has changed is undone however the process ends,
// but by SIGKILL.

import * as fs from 'node:fs'

export type TerminalSize = { readonly columns: number; readonly rows: number }

export type Terminal = {
  size(): TerminalSize
  onResize(run: () => void): void
  /** Keys as they are typed; Ctrl-C is one of them, and Ctrl-Z is not: it stops the command until the shell goes on with it. */
  onKey(run: (key: string) => void): void
  /** Nobody can type any more. */
  onGone(run: () => void): void
  /** Only lines that have changed are sent. A frame is left out while a slow terminal has not taken the one before. */
  show(lines: readonly string[]): void
  /** The screen is as it was before. Repeated, it does nothing. */
  close(): void
}

/** Another screen without a cursor, on which a long line is cut and not wrapped. */
const enter = '\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J'
const leave = '\x1b[?7h\x1b[?25h\x1b[?1049l'
const usualSize: TerminalSize = { columns: 80, rows: 24 }

/** Whether a person is at both ends of a terminal that has a screen (`TERM`): then `openTerminal` may be called. */
export const isInteractive = (term: string | undefined): boolean =>
  Boolean(process.stdin.isTTY) && Boolean(process.stdout.isTTY) && term !== 'dumb'

const ctrlZ = '\x1a'
/** Where no shell would continue a command that has stopped, the system does not stop it: it is back after this long. */
const notStoppedMs = 100

export const openTerminal = (): Terminal => {
  const { stdin, stdout } = process
  let shown: readonly string[] = []
  /** False while it is stopped, too. */
  let isTaken = false
  let isOpen = true
  let redraw = (): void => {}
  const take = (): void => {
    if (!isOpen || isTaken) return
    isTaken = true
    shown = []
    stdin.setRawMode(true).resume()
    stdout.write(enter)
    redraw()
  }
  const giveBack = (): void => {
    if (!isTaken) return
    isTaken = false
    stdin.setRawMode(false).pause()
    // What waits in the stream is behind this, and the process may be about to end: it goes out at once.
    writeAtOnce(leave)
  }
  const restore = (): void => {
    giveBack()
    isOpen = false
    process.removeListener('exit', restore)
    process.removeListener('SIGCONT', goOn)
  }
  const stop = (): void => {
    giveBack()
    process.kill(0, 'SIGTSTP')
    // It also keeps the process alive, which waits for keys alone.
    setTimeout(take, notStoppedMs)
  }
  const goOn = (): void => {
    // What stopped it from outside has not given the terminal back, and the shell has changed it since.
    isTaken = false
    take()
  }
  process.on('exit', restore)
  process.on('SIGCONT', goOn)
  stdin.setEncoding('utf8')
  take()
  // The terminal may go away: SIGHUP ends the command then.
  stdin.on('error', () => {})
  return {
    // A serial console has no size: it says 0.
    size: () => ({ columns: stdout.columns || usualSize.columns, rows: stdout.rows || usualSize.rows }),
    onResize(run) {
      redraw = run
      stdout.on('resize', () => {
        if (!isTaken) return
        shown = []
        stdout.write('\x1b[2J')
        run()
      })
    },
    onKey: (run) =>
      void stdin.on('data', (keys) => [...String(keys)].forEach((key) => (key === ctrlZ ? stop() : run(key)))),
    onGone: (run) => void stdin.on('end', run).on('error', run),
    show(lines) {
      if (!isTaken || stdout.writableLength > 0) return
      const count = Math.max(lines.length, shown.length)
      let text = ''
      for (let at = 0; at < count; at++) {
        const line = lines[at] ?? ''
        if (line !== (shown[at] ?? '')) text += `\x1b[${at + 1};1H${line}\x1b[K`
      }
      shown = lines
      if (text !== '') stdout.write(text)
    },
    close: restore,
  }
}

const writeAtOnce = (text: string): void => {
  try {
    fs.writeSync(process.stdout.fd, text)
  } catch {
    // The terminal is gone: there is nothing to restore.
  }
}
