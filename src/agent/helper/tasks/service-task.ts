// `service`: starts, stops, restarts or reloads a unit that the host's own file lists, as far as it lists the action.

import { findProgram } from '#platform/run-program.ts'
import { plainEnvironment } from '#platform/service-process.ts'
import { cancelJobOf } from '#platform/transient-units.ts'
import { runInTime } from '#platform/user-process.ts'
import { shortDetail, type PreparedTask, type TaskHost, type ParametersOf } from './prepared-task.ts'
import { refuseTask, type TaskRefusal } from './task-verbs.ts'

/** systemd's own limits for starting and stopping are 90 s each. */
const withinMs = 200_000

export const prepareService = (
  { tasks }: TaskHost,
  { name, action }: ParametersOf<'service'>,
): PreparedTask | TaskRefusal => {
  const listed = tasks.services.get(name)
  if (listed === undefined || !listed.actions.includes(action))
    return refuseTask('NOT_LISTED', `agent.toml lists no ${action} in tasks.services.${name}`)
  const systemctl = findProgram('systemctl')
  if (systemctl === null) return refuseTask('NOT_DONE', `There is no systemctl here to ${action} ${listed.unit}`)
  const command = [systemctl, '--no-ask-password', action, listed.unit]
  return {
    kind: 'prepared',
    repeatable: false,
    drop: () => Promise.resolve(),
    run: async (over) => {
      const ran = await runInTime({ command, env: plainEnvironment(), cwd: '/', user: null }, withinMs, over)
      if (ran.timedOut || over.aborted) await cancelJobOf(listed.unit)
      if (over.aborted) return { code: 'INTERRUPTED', detail: `${action} of ${listed.unit} was ended with the helper` }
      // systemctl was killed, and systemd goes on with what it was asked for.
      if (ran.code === null && !ran.timedOut && !ran.how.startsWith('could not be started'))
        return { code: 'INTERRUPTED', detail: shortDetail(`${action} of ${listed.unit}: systemctl was ${ran.how}`) }
      const said = ran.lines.join('\n')
      const end = {
        exit_code: ran.code,
        output: said === '' ? null : { head: said, tail: '', bytes: Buffer.byteLength(said) },
        evidence: { unit: listed.unit, action },
      }
      if (ran.timedOut)
        return {
          ...end,
          code: 'TIMED_OUT',
          detail: `${action} of ${listed.unit} took longer than ${withinMs / 1000} s`,
        }
      return ran.code === 0
        ? end
        : { ...end, code: 'PROGRAM_FAILED', detail: shortDetail(`${action} of ${listed.unit} failed: ${ran.how}`) }
    },
  }
}
