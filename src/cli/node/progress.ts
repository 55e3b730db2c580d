import type { Cli } from '#cli/kit/cli.ts'

export type Progress = { step(count?: number): void; end(): void }

/** A counter that rewrites itself on a terminal, and now and then a line where there is none. */
export const progressOn = (cli: Cli, total: number): Progress => {
  const stride = Math.max(1, Math.floor(total / 10))
  let done = 0
  return {
    step(count = 1) {
      const before = done
      done += count
      if (cli.err.isTerminal) cli.err.write(`\r${done} of ${total}`)
      else if (total > 20 && Math.floor(before / stride) !== Math.floor(done / stride))
        cli.err.write(`${done} of ${total}\n`)
    },
    end() {
      if (cli.err.isTerminal && total > 0) cli.err.write('\r\x1b[K')
    },
  }
}
