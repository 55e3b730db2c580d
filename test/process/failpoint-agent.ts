// A process to be killed: the real agent, which kills itself at the n-th time it reaches a step.
// `node failpoint-agent.ts STEP COUNT STATE JOIN_FILE RECOVERY`

import { agentSteps, type AgentStep } from '#agent/core/agent-parts.ts'
import { agentConfig } from '#agent/core/config.ts'
import { runAgent } from '#agent/main.ts'
import { openNudging } from '#agent/core/pause.ts'
import { systemClock } from '#platform/clock.ts'
import { openLog } from '#platform/log.ts'
import { onNudgeSignal, stopSignal } from '#platform/signals.ts'
import { systemRandom } from '#platform/random.ts'
import { openResolver } from '#platform/resolve-name.ts'
import { systemTimers } from '#platform/timers.ts'

const [step = '', count = '', state, joinFile, recovery] = process.argv.slice(2)
if (!agentSteps.some((known) => known === step)) throw new Error(`${step} is no step of an agent`)

const parsed = await agentConfig({ state, joinFile, recovery }, process.env, () => Promise.resolve(null))
if (parsed.kind === 'invalid') throw new Error(parsed.why)

let left = Number(count)
/** SIGKILL from oneself is delivered before the call returns: nothing after the step happens. */
const reached = (here: AgentStep): void => {
  if (here === step && --left === 0) process.kill(process.pid, 'SIGKILL')
}

const nudging = openNudging()
onNudgeSignal(nudging.fire)
const outcome = await runAgent(parsed.config, {
  clock: systemClock,
  timers: systemTimers,
  random: systemRandom,
  resolve: openResolver(systemTimers),
  log: openLog(parsed.config, 'agent'),
  signal: stopSignal(),
  reached,
  nudge: nudging.nudge,
})
process.stdout.write(`${JSON.stringify(outcome)}\n`)
