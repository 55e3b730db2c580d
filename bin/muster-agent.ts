#!/usr/bin/env node
// The door of the single-file bundle (npm run build:agent): the same commands, only those a node needs.

import { nodeNouns } from '#cli/node-nouns.ts'
import { openHints } from '#cli/kit/as-called.ts'
import { openExit, runCli } from '#cli/kit/run-cli.ts'
import { systemClock } from '#platform/clock.ts'
import { openHttpClient } from '#platform/http-client.ts'
import { systemRandom } from '#platform/random.ts'
import { standardStreams } from '#platform/standard-streams.ts'
import { systemTimers } from '#platform/timers.ts'
import { musterVersion } from '#platform/this-process.ts'

process.exitCode = await runCli(process.argv.slice(2), {
  program: 'muster',
  hints: openHints(
    'muster',
    nodeNouns.map(({ name }) => name),
  ),
  nouns: nodeNouns,
  version: musterVersion,
  env: process.env,
  ...standardStreams(),
  clock: systemClock,
  timers: systemTimers,
  random: systemRandom,
  exit: openExit(),
  openHttp: openHttpClient,
})
