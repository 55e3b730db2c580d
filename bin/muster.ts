// The one door.

import { dirname } from 'node:path'
import { runCli } from '#cli/run-cli.ts'
import { systemClock } from '#platform/clock.ts'
import { openHttpClient } from '#platform/http-client.ts'
import { systemRandom } from '#platform/random.ts'
import { standardStreams } from '#platform/standard-streams.ts'
import { systemTimers } from '#platform/timers.ts'
import { musterVersion } from '#platform/version.ts'

process.exitCode = await runCli(process.argv.slice(2), {
  // In the repository it is called as `./muster`, elsewhere by its name.
  program: process.cwd() === dirname(import.meta.dirname) ? './muster' : 'muster',
  version: musterVersion,
  env: process.env,
  ...standardStreams(),
  clock: systemClock,
  timers: systemTimers,
  random: systemRandom,
  openHttp: openHttpClient,
})
