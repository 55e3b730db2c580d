// Started by task-crash.test.ts and killed by it: a helper that trusts the folder of a test.

import * as path from 'node:path'
import { startHelper } from '#agent/helper/main.ts'
import { systemClock } from '#platform/clock.ts'
import { silentLog } from '#platform/log.ts'
import { systemRandom } from '#platform/random.ts'
import { systemTimers } from '#platform/timers.ts'
import { testTrust } from '../fakes/helped-host.ts'

const [agentToml = '', folder = ''] = process.argv.slice(2)
const host = { clock: systemClock, timers: systemTimers, random: systemRandom, log: silentLog, trust: testTrust }
const helper = await startHelper(host, {
  agentToml,
  agentUser: null,
  socket: { path: path.join(folder, 'socket') },
  stateFolder: path.join(folder, 'state'),
})
if ('kind' in helper) throw new Error(helper.message)
console.log('ready')
