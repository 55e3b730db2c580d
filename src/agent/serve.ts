// Life with an identity: a channel kept open, a certificate kept young, its recovery rehearsed and better sources looked for,
// side by side, until one of the first two cannot go on.

import { withSignal, type AgentParts } from '#agent/core/agent-parts.ts'
import { keepChannel } from '#agent/channel/keep-channel.ts'
import { betterIdentity } from '#agent/identity/acquire.ts'
import type { Identity } from '#agent/state/credentials.ts'
import { keepRenewed } from '#agent/identity/keep-renewed.ts'
import type { IdentityProvider } from '#agent/state/provider.ts'
import { storageReporter } from '#agent/identity/report-storage.ts'
import { keepRehearsed } from '#agent/recovery/rehearse.ts'
import { keepReporting } from '#agent/diagnostics/outbox.ts'
import type { RunEnd } from '#agent/core/outcome.ts'

export const serve = async (agent: AgentParts, providers: readonly IdentityProvider[]): Promise<RunEnd> => {
  const over = new AbortController()
  const session = withSignal(agent, AbortSignal.any([agent.signal, over.signal]))
  const identityNow = (): Identity => {
    const { identity } = agent.keeper.credentials()
    if (identity === null) throw new Error('a session without an identity')
    return identity
  }
  agent.record.phase('running')
  const reporter = storageReporter(session, identityNow)
  await reporter.check()
  const tasks = [
    keepChannel(session, identityNow),
    keepRenewed(session, identityNow, reporter),
    untilStopped(keepReporting(session, identityNow)),
    untilStopped(keepRehearsed(session, identityNow)),
    untilStopped(agent.programs.keep(session, identityNow)),
    untilStopped(agent.tasks.keep(session, identityNow)),
    untilStopped(agent.overlay.keep(session, identityNow)),
    untilStopped(keepLooking(session, identityNow, providers)),
  ]
  try {
    return await Promise.race(tasks)
  } finally {
    over.abort()
    await Promise.allSettled(tasks)
    agent.record.clear('channel', 'unresolved')
    agent.record.clear('renewal', 'unresolved')
  }
}

const untilStopped = (task: Promise<void>): Promise<RunEnd> => task.then(() => ({ kind: 'stopped' }))

const keepLooking = async (
  session: AgentParts,
  identityNow: () => Identity,
  providers: readonly IdentityProvider[],
): Promise<void> => {
  while (!session.signal.aborted) {
    const source = await betterIdentity(session, providers, () => identityNow().source)
    if (source !== null) session.log.info({ source }, 'switched to an identity from a better source')
  }
}
