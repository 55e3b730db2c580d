// The other process of `muster demo`: real agents, each with its own state folder, keys and connections.

import type { AgentConfig } from '#agent/core/config.ts'
import { runAgent } from '#agent/main.ts'
import { openNudging } from '#agent/core/pause.ts'
import { pause } from '#agent/core/pause.ts'
import { openLog } from '#platform/log.ts'
import { openResolver } from '#platform/resolve-name.ts'
import { stopSignal } from '#platform/signals.ts'
import { parseJoinString } from '#wire/core/join-string.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { usageFailure } from '#cli/kit/failure.ts'

/** What the demo hands over on standard input: join strings hold secrets. */
export type DemoAgent = {
  readonly id: string
  readonly join: string
  readonly keyStorage: 'file' | 'memory'
  readonly hardwareFile: string
  /** With a token of the domain, the node asks for its name. */
  readonly asksForName: boolean
}

const longestInput = 4 * 1024 * 1024
const anHourMs = 3_600_000

export const demoAgents = async (cli: Cli, _options: GlobalOptions, folder: string): Promise<void> => {
  const signal = stopSignal()
  const input = await cli.input.readAll(longestInput)
  const agents = JSON.parse(input ?? '[]') as readonly DemoAgent[]
  const resolve = openResolver(cli.timers)
  const outcomes = agents.map(async (agent) => {
    const log = openLog({ logLevel: 'warn', logFormat: 'auto' }, agent.id)
    const { nudge } = openNudging()
    const { clock, timers, random } = cli
    const host = { clock, timers, random, resolve, log, signal, reached: () => {}, nudge }
    const outcome = await runAgent(configOf(agent, folder), host)
    if (outcome.kind !== 'stopped') log.error({ outcome }, 'this agent has ended')
  })
  await Promise.all(outcomes)
  // The demo goes on after its last node is revoked, so that the user can look at the result.
  while (!signal.aborted) await pause(cli.timers, anHourMs, signal)
}

const configOf = (agent: DemoAgent, folder: string): AgentConfig => {
  const join = parseJoinString(agent.join)
  if (join === null) throw usageFailure(`There is no join string for ${agent.id}.`)
  return {
    stateFolder: `${folder}/agents/${agent.id}`,
    join: { kind: 'given', join, envFile: null },
    joinMethod: join.secret === null ? 'hardware' : 'token',
    keyType: 'p256',
    keyStorage: agent.keyStorage,
    hardwareFile: agent.hardwareFile,
    nodeId: agent.asksForName ? agent.id : null,
    recovery: agent.keyStorage === 'memory' ? 'none' : 'key',
    bootstrap: null,
    metricsListen: null,
    reportEveryMs: 60_000,
    rehearseEveryMs: null,
    wireguard: null,
    publish: null,
    agentToml: null,
    helperSocket: null,
    pinnedRoot: null,
    logLevel: 'warn',
    logFormat: 'auto',
  }
}
