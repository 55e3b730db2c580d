// Where the outputs of this host go: through the helper what it allows, and all others below a directory of the agent's own user,
// if there is one. Reloads likewise: by the helper, or as agent.toml lists them with the rights of the agent's user.

import * as path from 'node:path'
import type { AgentCore } from '#agent/core/agent-parts.ts'
import type { AgentConfig } from '#agent/core/config.ts'
import type { AgentRecord } from '#agent/diagnostics/record.ts'
import { defaultAgentToml } from '#agent/helper/agent-toml.ts'
import { noHelp, type Helped as HelperRuns } from '#agent/fleet/helped-runner.ts'
import { openHelperClient, type HelperClient } from '#agent/helper/client.ts'
import { helpedPublisher, helperFeatures } from '#agent/helper/helped-publisher.ts'
import { readAgentToml } from '#agent/helper/read-agent-toml.ts'
import { howToRun, runReload, unitMark } from '#agent/helper/run-listed.ts'
import { defaultSocket, type AnswerOf } from '#agent/helper/verbs.ts'
import { openOwnPublisher } from '#agent/programs/own-publisher.ts'
import type { Publisher } from '#agent/programs/publisher.ts'
import { pathExists } from '#platform/paths.ts'
import { ownTrust, type Trust } from '#platform/trusted-path.ts'
import { isInMemory } from '#platform/unlinked-file.ts'

export type HostPublisher = Publisher & {
  /** Resolves once it is known what the helper allows, if there is one. */
  readonly ready: Promise<void>
  /** What the helper runs for the agent, as it allows it now. */
  runs(): Promise<HelperRuns>
  close(): void
}

type Allowed = { readonly publisher: Publisher; readonly allows: AnswerOf<'hello'> }

/** A helper may be started later, and what agent.toml allows may change. */
const askEveryMs = 30_000

export const openHostPublisher = (
  { timers, random, log }: Pick<AgentCore, 'timers' | 'random' | 'log'>,
  config: Pick<AgentConfig, 'publish' | 'agentToml' | 'helperSocket'>,
  record: Pick<AgentRecord, 'facts'>,
  keysOnDisk: () => boolean,
  trust: Trust = ownTrust(),
): HostPublisher => {
  const socket = config.helperSocket ?? defaultSocket
  const client = openHelperClient(timers, socket)
  const ending = new AbortController()
  const reloadHere = ownReload(path.resolve(config.agentToml ?? defaultAgentToml), trust, ending.signal)
  const own = openOwnPublisher({ directory: config.publish, keysOnDisk, reload: reloadHere }, random)
  let helped: Allowed | null = null
  let hasAnswered = false
  let said = ''

  const ask = async (): Promise<void> => {
    const features = await helperFeatures(client)
    helped =
      features.kind === 'there'
        ? { publisher: helpedPublisher(client, features.allows), allows: features.allows }
        : null
    hasAnswered ||= features.kind === 'there'
    const helper = { there: features.kind === 'there', lacks: [...features.lacks] }
    if (JSON.stringify(helper) === said) return
    said = JSON.stringify(helper)
    record.facts({ helper })
    log.info(helper, helper.there ? 'there is a helper on this host' : 'there is no helper on this host')
  }
  const askAgain = (): void =>
    void ask().catch((error: unknown) => log.error({ err: error }, 'the helper was not asked'))
  const cancel = timers.every(askEveryMs, askAgain)

  const helpedPlace: Publisher['placeOf'] = (output) => helped?.publisher.placeOf(output) ?? null
  const ready = ask()
  /** Where the host has a helper, nothing falls back to the agent's own user because the helper does not answer just now. */
  const runs = async (): Promise<HelperRuns> => {
    await ready
    if (helped === null) return hasAnswered || pathExists(socket) ? runsOf(client) : noHelp
    return helped.allows.fault === null ? runsOf(client, helped.allows) : runsOf(client)
  }
  return {
    ready,
    runs,
    placeOf: (output) => helpedPlace(output) ?? own.placeOf(output),
    publish: async (generation) => {
      const place = helpedPlace(generation.output)
      if (place === null || helped === null) return own.publish(generation)
      const directory = path.dirname(place)
      if (!keysOnDisk() && !isInMemory(directory))
        throw new Error(`The keys of this node must not reach a disk, and ${directory} is on one: use a tmpfs`)
      await helped.publisher.publish(generation)
    },
    remove: async (output) => {
      await own.remove(output)
      if (helped !== null) return helped.publisher.remove(output)
      // It may have written the output before it went away.
      if (pathExists(socket)) throw new Error(`The helper at ${socket} does not answer: its files of ${output} stay`)
    },
    reload: async (name) =>
      helped?.allows.reloads.includes(name) === true ? helped.publisher.reload(name) : reloadHere(name),
    close: () => {
      cancel()
      ending.abort()
      client.close()
    },
  }
}

/** Where agent.toml lists no service or no check, these run as on a host without a helper. Left out: it is not known what it lists. */
const runsOf = (client: HelperClient, allows?: AnswerOf<'hello'>): HelperRuns => ({
  services:
    allows?.services.length === 0
      ? null
      : {
          start: (request) => client.ask('service.start', request),
          stop: (request) => client.ask('service.stop', request),
          status: () => client.ask('service.status', {}),
        },
  checks: allows?.checks.length === 0 ? null : { run: (request) => client.ask('check.run', request) },
})

const ownReload =
  (agentToml: string, trust: Trust, over: AbortSignal): Publisher['reload'] =>
  async (name) => {
    const read = readAgentToml(agentToml, trust)
    if (read.kind === 'refused') throw new Error(`Reload ${name} is not done: ${read.message}`)
    const listed = read.toml.reloads.get(name)
    if (listed === undefined) throw new Error(`${agentToml} lists no reload ${name}`)
    const refused = await runReload(name, listed, { runs: howToRun(trust), mark: unitMark(agentToml), over }, trust)
    if (refused !== null) throw new Error(refused.message)
  }
