// A command on a terminal of its own, made by `script` (Debian's bsdutils).

import { spawn } from 'node:child_process'
import { cleanup, type Scope } from './cleanup.ts'
import { childEnvironment, repository } from './child.ts'
import { eventually, within } from './eventually.ts'

export type PseudoTerminal = {
  /** All that has been written to it. */
  output(): string
  type(keys: string): void
  /** Resolves once the output has that text or fits that shape, behind the place where the last such wait ended. */
  shows(what: RegExp): Promise<void>
  readonly ended: Promise<number | null>
}

const withinMs = 60_000

/** `commands`: of a shell, with the terminal as its input and output. */
export const openPseudoTerminal = (
  t: Scope,
  commands: string,
  env: Readonly<Record<string, string | undefined>> = {},
): PseudoTerminal => {
  const child = spawn('script', ['--quiet', '--return', '--flush', '--command', commands, '/dev/null'], {
    cwd: repository,
    env: childEnvironment({ TERM: 'xterm', ...env }),
    stdio: 'pipe',
  })
  child.stdin.on('error', () => {})
  let output = ''
  let seen = 0
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  const ended = new Promise<number | null>((resolve) => void child.once('close', resolve))
  cleanup(t, async () => {
    // It hangs up on its commands.
    child.kill('SIGTERM')
    await within('script to end', withinMs, ended)
  })
  return {
    output: () => output,
    type: (keys) => void child.stdin.write(keys),
    async shows(what) {
      const find = (): RegExpExecArray | null => what.exec(output.slice(seen))
      await eventually(`the terminal to show ${what}`, () => find() !== null, { withinMs }).catch((error: unknown) => {
        throw new Error(`it shows:\n${JSON.stringify(output.slice(seen))}`, { cause: error })
      })
      const found = find()
      if (found !== null) seen += found.index + found[0].length
    },
    ended,
  }
}
