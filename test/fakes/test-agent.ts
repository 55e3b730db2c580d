// An agent inside the test's own process, with real clocks, files and sockets.

import * as path from 'node:path'
import type { AgentConfig } from '#agent/core/config.ts'
import { runAgent, type AgentHost, type AgentOutcome, type BetterSources } from '#agent/main.ts'
import { openNudging } from '#agent/core/pause.ts'
import { systemClock, type Clock } from '#platform/clock.ts'
import { silentLog } from '#platform/log.ts'
import { systemRandom } from '#platform/random.ts'
import { openResolver } from '#platform/resolve-name.ts'
import { systemTimers } from '#platform/timers.ts'
import type { JoinString } from '#wire/core/join-string.ts'
import { cleanup, type Scope } from '../process/cleanup.ts'
import { tempFolder } from '../process/temp-folder.ts'

export type TestAgent = {
  readonly config: AgentConfig
  readonly outcome: Promise<AgentOutcome>
  stop(): Promise<AgentOutcome>
}

export const testAgentConfig = (t: Scope, join: JoinString, change: Partial<AgentConfig>): AgentConfig => ({
  stateFolder: path.join(tempFolder(t), 'state'),
  join: { kind: 'given', join, envFile: null },
  joinMethod: 'token',
  keyType: 'p256',
  keyStorage: 'file',
  hardwareFile: null,
  nodeId: null,
  recovery: 'key',
  bootstrap: null,
  metricsListen: null,
  reportEveryMs: 60_000,
  rehearseEveryMs: null,
  wireguard: null,
  publish: null,
  agentToml: path.join(tempFolder(t), 'agent.toml'),
  helperSocket: null,
  pinnedRoot: null,
  logLevel: 'silent',
  logFormat: 'json',
  ...change,
})

/** `aheadMs`: how far its clock is from the test's. */
export const runTestAgent = (
  t: Scope,
  config: AgentConfig,
  aheadMs = 0,
  random = systemRandom,
  changes: Partial<Pick<AgentHost, 'reached' | 'nudge'>> = {},
  better: BetterSources = () => [],
): TestAgent => {
  const stopping = new AbortController()
  const clock: Clock = { ...systemClock, nowMs: () => systemClock.nowMs() + aheadMs }
  const host: AgentHost = {
    clock,
    timers: systemTimers,
    random,
    resolve: openResolver(systemTimers),
    log: silentLog,
    signal: stopping.signal,
    reached: () => {},
    nudge: openNudging().nudge,
    ...changes,
  }
  const outcome = runAgent(config, host, better)
  const stop = (): Promise<AgentOutcome> => {
    stopping.abort()
    return outcome
  }
  cleanup(t, async () => void (await stop()))
  return { config, outcome, stop }
}
