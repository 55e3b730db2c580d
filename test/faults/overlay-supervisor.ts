// A process to be killed: runs services as its children, as the agent does, and says when they run.
// `node overlay-supervisor.ts STATE`, the services as JSON on standard input.

import * as fs from 'node:fs'
import { plainDigest } from '#agent/fleet/secret-digest.ts'
import { openSupervisor } from '#agent/fleet/supervised-runner.ts'
import { wantedServices } from '#agent/fleet/wanted-services.ts'
import type { Service } from '#domain/fleet/overlay.ts'
import { systemClock } from '#platform/clock.ts'
import { silentLog } from '#platform/log.ts'
import { plainEnvironment } from '#platform/service-process.ts'
import { systemTimers } from '#platform/timers.ts'

const [state = ''] = process.argv.slice(2)
const services = JSON.parse(fs.readFileSync(0, 'utf8')) as Service[]
const current = `${state}/overlay/current`
const runner = openSupervisor({ clock: systemClock, timers: systemTimers, log: silentLog }, state)
for (const service of wantedServices({ services, files: [] }, current, plainDigest)) {
  await runner.ensure(service, { ...plainEnvironment(), MUSTER_OVERLAY: current })
}
process.stdout.write('running\n')
// Until it is killed.
setInterval(() => {}, 60_000)
