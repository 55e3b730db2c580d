// One call of the CLI in the process of the test: all of it but bin/muster.ts, without the cost of a process. `runMuster` is
// for tests that are about the process: its signals, its working directory, a clock of its own.

import { systemClock } from '#platform/clock.ts'
import { openHttpClient, type HttpClient } from '#platform/http-client.ts'
import { systemRandom } from '#platform/random.ts'
import type { TextOutput } from '#platform/standard-streams.ts'
import { systemTimers } from '#platform/timers.ts'
import { musterVersion } from '#platform/this-process.ts'
import { childEnvironment } from './child.ts'
import type { Ran, RunOptions } from './run-muster.ts'

type Kept = TextOutput & { text(): string }

const kept = (): Kept => {
  let text = ''
  return {
    isTerminal: false,
    columns: 100,
    write: (more) => void (text += more),
    drained: () => Promise.resolve(),
    text: () => text,
  }
}

export const musterHere = async (args: readonly string[], options: Pick<RunOptions, 'env'> = {}): Promise<Ran> => {
  // On demand: most tests start planes and agents, and call no command.
  const [{ openExit, runCli }, { allNouns }, { openHints }] = await Promise.all([
    import('#cli/kit/run-cli.ts'),
    import('#cli/all-nouns.ts'),
    import('#cli/kit/as-called.ts'),
  ])
  const [out, err] = [kept(), kept()]
  const opened: HttpClient[] = []
  const code = await runCli(args, {
    program: './muster',
    hints: openHints('./muster'),
    nouns: allNouns,
    version: musterVersion,
    env: childEnvironment(options.env ?? {}),
    input: { isTerminal: false, readAll: () => Promise.resolve('') },
    out,
    err,
    clock: systemClock,
    timers: systemTimers,
    random: systemRandom,
    exit: openExit(),
    openHttp(target) {
      const client = openHttpClient(target)
      opened.push(client)
      return client
    },
  })
  // As the end of a process does.
  for (const client of opened) client.close()
  return { code, stdout: out.text(), stderr: err.text() }
}
