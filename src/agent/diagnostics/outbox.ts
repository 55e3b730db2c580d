// Reports on their way to the plane. This process numbers them without a gap, keeps each until the plane has acknowledged it, and
// resends them over the next channel. So no report is lost and none counts twice, across rotations, cuts and restarts of the
// plane, which drops repeats by their number.
//
// A report is the state of the node, not an event. While there is no channel, the latest report replaces the earlier ones before
// they get a number: ten thousand nodes do not come back with a backlog.

import type { ReportBody } from '#wire/node/report.ts'
import type { AgentParts } from '#agent/core/agent-parts.ts'
import { pause } from '#agent/core/pause.ts'
import type { Identity } from '#agent/state/credentials.ts'
import { reportOf, type Report } from './report.ts'

/** May send nothing at all: what it was given counts only once it is acknowledged. */
export type SendReport = (body: ReportBody) => void

export type Outbox = {
  post(report: Report): void
  /** From now on over this one, beginning with the oldest that is not acknowledged. Null: there is none to send over. */
  use(send: SendReport | null): void
  /** The plane has taken all up to this number. */
  acknowledge(instance: string, number: number): void
  /** Resolves when all reports sent before are acknowledged, or when none can be sent any more. */
  settled(signal: AbortSignal): Promise<void>
  counts(): { readonly sent: number; readonly acknowledged: number }
}

/** Beyond these the plane is not keeping up, and the latest is what it wants to know. */
const mostInFlight = 32
const mostWaiting = 32

/** Why later reports replaced earlier ones: there was no channel to send them over, or the plane takes them too slowly. */
export type Superseded = 'no_channel' | 'plane_behind'

/** `dropped` is called with the number of reports that a later one replaced before they got a number. */
export const openOutbox = (instance: string, dropped: (count: number, why: Superseded) => void): Outbox => {
  const inFlight: ReportBody[] = []
  const waiting: Report[] = []
  const settling = new Set<() => void>()
  let send: SendReport | null = null
  let lastNumber = 0
  let acknowledged = 0

  const fill = (): void => {
    if (send === null) return
    for (const report of waiting.splice(0, mostInFlight - inFlight.length)) {
      lastNumber += 1
      const body = { instance, number: lastNumber, ...report }
      inFlight.push(body)
      send(body)
    }
  }
  const wake = (): void => {
    for (const look of [...settling]) look()
  }

  return {
    post: (report) => {
      waiting.push(report)
      fill()
      const tooMany = waiting.length - (send === null ? 1 : mostWaiting)
      if (tooMany <= 0) return
      waiting.splice(0, tooMany)
      dropped(tooMany, send === null ? 'no_channel' : 'plane_behind')
    },
    use: (next) => {
      send = next
      if (send !== null) for (const body of inFlight) send(body)
      fill()
      wake()
    },
    acknowledge: (of, number) => {
      // A plane may name more than was ever sent; nothing may be forgotten for that.
      if (of !== instance || number <= acknowledged || number > lastNumber) return
      acknowledged = number
      while (inFlight[0] !== undefined && inFlight[0].number <= number) inFlight.shift()
      fill()
      wake()
    },
    settled: (signal) => {
      const upTo = lastNumber
      return new Promise((resolve) => {
        const look = (): void => {
          if (acknowledged < upTo && send !== null && !signal.aborted) return
          settling.delete(look)
          signal.removeEventListener('abort', look)
          resolve()
        }
        settling.add(look)
        signal.addEventListener('abort', look)
        look()
      })
    },
    counts: () => ({ sent: lastNumber, acknowledged }),
  }
}

type ReportingAgent = Pick<
  AgentParts,
  'clock' | 'config' | 'outbox' | 'timers' | 'signal' | 'record' | 'keeper' | 'storage'
>

/** The shortest time between two reports of changes; the next report has every change since. */
const changesEveryMs = 1_000

/**
 * Reports how the node is doing at a steady rate, and at once when something about it changes, until the agent is stopped.
 * Reports that cannot be sent yet wait in the outbox.
 */
export const keepReporting = async (agent: ReportingAgent, identityNow: () => Identity): Promise<void> => {
  const { clock, config, outbox, timers, signal } = agent
  let reported = ''
  let reportedAtMs = -Infinity
  for (; !signal.aborted; await pause(timers, Math.min(changesEveryMs, config.reportEveryMs), signal)) {
    // Agents send only what the plane says it understands.
    if (!identityNow().understands.includes('report')) continue
    const report = reportOf(agent)
    const urgent = urgentFactsOf(report)
    const nowMs = clock.monotonicMs()
    // A pause is never shorter than asked for but by the fraction of a millisecond that timers round away.
    const isDue = nowMs - reportedAtMs >= config.reportEveryMs - 1
    if (!isDue && urgent === reported) continue
    reported = urgent
    reportedAtMs = nowMs
    outbox.post(report)
    agent.record.facts({ reports: outbox.counts() })
  }
}

/** The facts whose change is reported at once. Counters and times change all the time. */
const urgentFactsOf = ({ source, certificate, endpoint_set, conditions, rehearsal, storage }: Report): string =>
  JSON.stringify([
    source,
    certificate.serial,
    // A plane that was renamed waits for it before it gives up its former name.
    [endpoint_set.id, endpoint_set.revision],
    conditions.map(({ name, since }) => [name, since]),
    rehearsal,
    [storage.identity_writable, storage.diagnostics_writable, storage.reserve],
  ])
