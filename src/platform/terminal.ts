// The whole terminal, for a command that shows something until it is told to stop. What it has changed is undone however the process ends,
// but by SIGKILL.

import * as fs from 'node:fs'

export type TerminalSize = { readonly columns: number; readonly rows: number }

export type Terminal = {
  size(): TerminalSize
  onResize(run: () => void): void
  /** Keys as they are typed; Ctrl-C is one of them. */
  onKey(run: (key: string) => void): void
  /** Only lines that have changed are sent. A frame is left out while a slow terminal has not taken the one before. */
  show(lines: readonly string[]): void
  /** The screen is as it was before. Repeated, it does nothing. */
  close(): void
}

/** Another screen without a cursor, on which a long line is cut and not wrapped. */
const enter = '\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J'
const leave = '\x1b[?7h\x1b[?25h\x1b[?1049l'
const usualSize: TerminalSize = { columns: 80, rows: 24 }

/** Whether a person is at both ends: then `openTerminal` may be called. */
export const isInteractive = (): boolean => Boolean(process.stdin.isTTY) && Boolean(process.stdout.isTTY)

export const openTerminal = (): Terminal => {
  const { stdin, stdout } = process
  let shown: readonly string[] = []
  let isOpen = true
  const restore = (): void => {
    if (!isOpen) return
    isOpen = false
    process.removeListener('exit', restore)
    stdin.setRawMode(false).pause()
    // What waits in the stream is behind this, and the process may be about to end: it goes out at once.
    writeAtOnce(leave)
  }
  process.on('exit', restore)
  stdin.setRawMode(true).setEncoding('utf8').resume()
  stdout.write(enter)
  // The terminal may go away: SIGHUP ends the command then.
  stdin.on('error', () => {})
  return {
    // A serial console has no size: it says 0.
    size: () => ({ columns: stdout.columns || usualSize.columns, rows: stdout.rows || usualSize.rows }),
    onResize(run) {
      stdout.on('resize', () => {
        shown = []
        stdout.write('\x1b[2J')
        run()
      })
    },
    onKey: (run) => void stdin.on('data', (keys) => [...String(keys)].forEach(run)),
    show(lines) {
      if (!isOpen || stdout.writableLength > 0) return
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
