import * as os from 'node:os'
import type { Phase } from './contender.ts'

export type Outcome = {
  readonly name: string
  readonly bare: Phase
  readonly enroll: Phase
  /** Nothing done: the channel is the first use. */
  readonly confirm: Phase
  readonly channel: Phase
}

const say = (label: string, text: string): void => console.log(`${label.padEnd(16)} ${text}`)

export const printOutcome = (outcome: Outcome, nodes: number): void => {
  const { name, bare, enroll, confirm, channel } = outcome
  console.log(`\n${name}`)
  for (const [label, phase] of [...named(outcome), ['bare handshake', bare]] as const) {
    const { plane, database } = phase.cpuMs
    const ofDatabase = database === 0 ? '' : ` and ${(database / phase.done).toFixed(3)} ms of the database's`
    say(
      label,
      `${(plane / phase.done).toFixed(3)} ms of plane CPU${ofDatabase} a node, ${perSecond(phase).toFixed(0)} a second`,
    )
  }
  for (const [label, { failures }] of named(outcome))
    if (failures.length > 0) console.log(`${label} failures:`, failures.slice(0, 5))
  const failures = enroll.failures.length + confirm.failures.length + channel.failures.length
  say('failures', String(failures))
  const seconds = (nodes * msEach(outcome)) / 1000
  say('whole storm', `${seconds.toFixed(1)} s, ${(nodes / seconds).toFixed(0)} nodes a second`)
  const ratio = planeCpu(enroll) / planeCpu(bare)
  say('ratio', `${ratio.toFixed(2)} enrollment CPU to a bare handshake (aim: at most 1.8)`)
  const way = named(outcome).reduce((sum, [, phase]) => sum + planeCpu(phase), 0) / planeCpu(bare)
  say('whole way', `${way.toFixed(2)} bare handshakes from a token to an open channel (aim: at most 4.3)`)
  say('busy', `while enrolling: ${busy(enroll)}`)
}

/** How two did in this run. */
export const printAgainst = (one: Outcome, other: Outcome): void => {
  console.log(`\n${one.name}, measured against ${other.name} in this run`)
  for (const [at, [label, phase]] of named(one).entries()) {
    const before = named(other)[at]?.[1] as Phase
    const cpu = planeCpu(phase) / planeCpu(before)
    say(
      label,
      `${perSecond(phase).toFixed(0)} to ${perSecond(before).toFixed(0)} a second, ratio ${(perSecond(phase) / perSecond(before)).toFixed(2)}; ` +
        `plane CPU a node: ratio ${cpu.toFixed(2)}`,
    )
  }
  say('ratio', `${(msEach(other) / msEach(one)).toFixed(2)} of its nodes a second over the whole storm`)
}

const named = ({ enroll, confirm, channel }: Outcome) =>
  (
    [
      ['enroll', enroll],
      ['confirm', confirm],
      ['channel', channel],
    ] as const
  ).filter(([, { done, failures }]) => done + failures.length > 0)

const perSecond = ({ done, ms }: Phase): number => (done / ms) * 1000
const planeCpu = ({ cpuMs, done }: Phase): number => cpuMs.plane / done
/** From a token to an open channel. */
const msEach = (outcome: Outcome): number => named(outcome).reduce((sum, [, { ms, done }]) => sum + ms / done, 0)

/** Who had the cores: where they add up to all of them, no further process can make anything faster. */
const busy = ({ cpuMs: { plane, client, database, machine }, ms }: Phase): string => {
  const cores = (used: number): string => (used / ms).toFixed(2)
  const ours = plane + client + database
  const parts = [`plane ${cores(plane)}`, `client ${cores(client)}`]
  if (database > 0) parts.push(`database ${cores(database)}`)
  parts.push(`others ${cores(Math.max(0, machine - ours))}`)
  return `${parts.join(', ')} of ${os.availableParallelism()} cores`
}
