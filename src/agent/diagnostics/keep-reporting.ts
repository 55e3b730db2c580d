// How the node is doing, told at a steady pace, and at once when something about it changes.

import type { AgentParts } from '#agent/core/agent-deps.ts'
import type { Identity } from '#agent/state/credentials.ts'
import { pause } from '#agent/core/pause.ts'
import { reportOf, type Report } from './report.ts'

/** News is told at most this often; whatever changed meanwhile is in the next. */
const newsEveryMs = 1_000

/** Until the agent is stopped. Reports that cannot be sent yet wait in the outbox. */
export const keepReporting = async (agent: AgentParts, identityNow: () => Identity): Promise<void> => {
  const { clock, config, outbox, timers, signal } = agent
  let told = ''
  let toldAtMs = -Infinity
  for (; !signal.aborted; await pause(timers, Math.min(newsEveryMs, config.reportEveryMs), signal)) {
    // Agents send only what the plane says it understands.
    if (!identityNow().understands.includes('report')) continue
    const report = reportOf(agent)
    const news = newsIn(report)
    const nowMs = clock.monotonicMs()
    // A pause is never shorter than asked for but by the fraction of a millisecond that timers round away.
    const isDue = nowMs - toldAtMs >= config.reportEveryMs - 1
    if (!isDue && news === told) continue
    told = news
    toldAtMs = nowMs
    outbox.post(report)
    agent.board.facts({ reports: outbox.counts() })
  }
}

/** What somebody would want to know at once. Counters and times change all the time. */
const newsIn = ({ source, certificate, conditions, rehearsal, storage }: Report): string =>
  JSON.stringify([
    source,
    certificate.serial,
    conditions.map(({ name, since }) => [name, since]),
    rehearsal,
    [storage.identity_writable, storage.diagnostics_writable, storage.reserve],
  ])
