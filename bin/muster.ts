// The one door.

import { allNouns } from '#cli/all-nouns.ts'
import { openHints } from '#cli/kit/as-called.ts'
import { openExit, runCli } from '#cli/kit/run-cli.ts'
import { systemClock } from '#platform/clock.ts'
import { openHttpClient } from '#platform/http-client.ts'
import { systemRandom } from '#platform/random.ts'
import { standardStreams } from '#platform/standard-streams.ts'
import { systemTimers } from '#platform/timers.ts'
import { endIfIdle, musterVersion, programName } from '#platform/this-process.ts'

const program = programName()

process.exitCode = await runCli(process.argv.slice(2), {
  program,
  hints: openHints(program),
  nouns: allNouns,
  version: musterVersion,
  env: process.env,
  ...standardStreams(),
  clock: systemClock,
  timers: systemTimers,
  random: systemRandom,
  exit: openExit(),
  openHttp: openHttpClient,
})
endIfIdle()
