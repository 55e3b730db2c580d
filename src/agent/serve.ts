// Life with an identity: a channel kept open and a certificate kept young, side by side, until one of them cannot go on.

import type { AgentParts } from './agent-deps.ts'
import { keepChannel } from './channel/keep-channel.ts'
import type { Identity } from './identity/credentials.ts'
import { keepRenewed } from './identity/keep-renewed.ts'
import { storageReporter } from './identity/report-storage.ts'
import type { SessionEnd } from './session-end.ts'

export const serve = async (agent: AgentParts): Promise<SessionEnd> => {
  const over = new AbortController()
  const session: AgentParts = { ...agent, signal: AbortSignal.any([agent.signal, over.signal]) }
  const identityNow = (): Identity => {
    const { identity } = agent.keeper.credentials()
    if (identity === null) throw new Error('a session without an identity')
    return identity
  }
  agent.board.phase('running')
  const reporter = storageReporter(session, identityNow)
  await reporter.check()
  const both = [keepChannel(session, identityNow), keepRenewed(session, identityNow, reporter)]
  try {
    return await Promise.race(both)
  } finally {
    over.abort()
    await Promise.allSettled(both)
    agent.board.clear('channel')
    agent.board.clear('renewal')
  }
}
