// Where the outputs of this host go: through the helper what it allows, and all others below a directory of the agent's own user,
// if there is one. Reloads likewise: by the helper, or as agent.toml lists them with the rights of the agent's user.

import * as path from 'node:path'
import type { AgentCore } from '#agent/core/agent-parts.ts'
import type { AgentConfig } from '#agent/core/config.ts'
import { openHostTasks } from './host-tasks.ts'
import type { TaskHelper } from '#agent/tasks/helped-tasks.ts'
import type { AgentRecord } from '#agent/diagnostics/record.ts'
import { defaultAgentToml, nothingAllowed } from '#agent/helper/agent-toml.ts'
import { noHelp, type Helped as HelperRuns } from '#agent/fleet/helped-runner.ts'
import { openHelperClient, type HelperClient } from '#agent/helper/client.ts'
import { helpedPlace, helpedPublisher, helperFeatures } from '#agent/helper/helped-publisher.ts'
import { readAgentToml } from '#agent/helper/read-agent-toml.ts'
import { pinsStatementKeys } from '#agent/helper/tasks/tasks-toml.ts'
import { howToRun, runReload, unitMark } from '#agent/helper/run-listed.ts'
import { defaultSocket, type AnswerOf } from '#agent/helper/verbs.ts'
import { openOwnPublisher, refuseDisk } from '#agent/programs/own-publisher.ts'
import { findOutputs } from '#agent/programs/find-outputs.ts'
import { LeftBehind, type FoundOutput, type Place, type Publisher } from '#agent/programs/publisher.ts'
import { errno } from '#platform/files.ts'
import { pathExists } from '#platform/paths.ts'
import { faultOfPath, ownTrust, type Trust } from '#platform/trusted-path.ts'

export type HostPublisher = Publisher & {
  /** Resolves once it is known what the helper allows, if there is one. */
  readonly ready: Promise<void>
  /** What the helper runs for the agent, as it allows it now. */
  runs(): Promise<HelperRuns>
  /** Tasks through the helper. */
  readonly tasks: TaskHelper
  close(): void
}

/** A helper may be started later, and what agent.toml allows may change. */
const askEveryMs = 30_000
/** While one whose socket is configured does not answer: services wait for it. The usual socket is that of systemd, which waits itself. */
const awaitEveryMs = 2_000
/** When it is asked again whether it allows something else than before. */
const confirmAfterMs = 5_000

export const openHostPublisher = (
  { timers, random, log }: Pick<AgentCore, 'timers' | 'random' | 'log'>,
  config: Pick<AgentConfig, 'publish' | 'agentToml' | 'helperSocket'>,
  record: Pick<AgentRecord, 'facts'>,
  keysOnDisk: () => boolean,
  trust: Trust = ownTrust(),
): HostPublisher => {
  const socket = config.helperSocket ?? defaultSocket
  const client = openHelperClient(timers, socket, faultOfSocket)
  const helper = helpedPublisher(client)
  const tasks = openHostTasks(client)
  const ending = new AbortController()
  const agentToml = path.resolve(config.agentToml ?? defaultAgentToml)
  const reloadHere = ownReload(agentToml, trust, ending.signal)
  const own = openOwnPublisher(config.publish, keysOnDisk, random)
  /** Null: it is away, or there is none. */
  let allows: AnswerOf<'hello'> | null = null
  let whyAway = `The helper at ${socket} has not answered yet`
  let hasAnswered = false
  let said = ''
  /** What it allows otherwise than before, in an answer that was not repeated yet. */
  let doubted = ''
  let cancelConfirm = (): void => {}
  let isAsking = false

  /** Half of agent.toml, written by an editor or a copy, may be a whole file that lists less: outputs and services would move. */
  const isDoubtful = (next: AnswerOf<'hello'>): boolean => {
    if (allows === null || next.fault !== null) return false
    const text = JSON.stringify(next)
    return text !== JSON.stringify(allows) && text !== doubted
  }
  const ask = async (): Promise<void> => {
    const features = await helperFeatures(client)
    if (features.kind === 'there' && isDoubtful(features.allows)) {
      doubted = JSON.stringify(features.allows)
      cancelConfirm = timers.after(confirmAfterMs, askAgain)
      return
    }
    doubted = ''
    allows = features.kind === 'there' ? features.allows : null
    tasks.allowed(allows === null ? null : allows.verbs)
    hasAnswered ||= features.kind === 'there'
    if (features.kind === 'none') whyAway = features.why
    const facts = {
      ...{ there: features.kind === 'there', lacks: [...features.lacks] },
      ...(features.kind === 'there' && startsPrograms(features.allows) && { overlays: features.allows.overlays }),
    }
    if (JSON.stringify(facts) === said) return
    said = JSON.stringify(facts)
    record.facts({ helper: facts })
    if (features.kind === 'there') log.info(facts, 'there is a helper on this host')
    else log.info({ ...facts, why: features.why }, 'no helper of this host answers')
  }
  const askAgain = (): void => {
    // One that hangs is not given more to answer.
    if (isAsking) return
    isAsking = true
    void ask()
      .catch((error: unknown) => log.error({ err: error }, 'the helper was not asked'))
      .finally(() => (isAsking = false))
  }
  const cancel = timers.every(askEveryMs, askAgain)
  const cancelAwait = timers.every(awaitEveryMs, () => {
    if (allows === null && config.helperSocket !== null) askAgain()
  })

  const ready = ask()
  /** Where the host has a helper, nothing falls back to the agent's own user because the helper does not answer just now. */
  const isAway = (): boolean => allows === null && (hasAnswered || pathExists(socket))
  /** Why it is not known in which directories the helper may have written; null: it is, or this host has no helper. */
  const directoriesUnknown = (): string | null => {
    if (allows !== null) return allows.fault
    // Both may be started at once, and the agent first.
    const hasHelper = isAway() || config.helperSocket !== null || pathExists(agentToml)
    return hasHelper ? whyAway : null
  }
  /** A helper of 0.5 refuses a request with it. */
  const takesOverlay = (): boolean => allows?.overlays !== undefined
  /** An agent that is started before its helper must not start what the helper then starts again, as another user. */
  const isExpected = (): boolean => isAway() || config.helperSocket !== null || isPinned(agentToml, trust)
  const runs = async (): Promise<HelperRuns> => {
    await ready
    if (allows === null) return isExpected() ? runsOf(client, takesOverlay) : noHelp
    return allows.fault === null ? runsOf(client, takesOverlay, allows) : runsOf(client, takesOverlay)
  }
  return {
    ready,
    runs,
    tasks,
    placeOf: (output) => {
      const fault = isAway() ? whyAway : (allows?.fault ?? null)
      if (output.files.directory !== null && fault !== null) return { by: 'nobody', why: fault }
      const place = allows === null ? null : helpedPlace(allows, output)
      return place ?? own.place ?? { by: 'nobody', why: noPlace }
    },
    found: (of) => {
      const listed = allows?.fault === null ? allows.outputs : []
      const places: { readonly place: Place; readonly names: readonly string[] | null }[] = [
        ...listed.map(({ directory, names }) => ({ place: { by: 'helper' as const, directory }, names })),
        ...(own.place === null ? [] : [{ place: own.place, names: null }]),
      ]
      const unknown = directoriesUnknown()
      let more = unknown === null ? null : new Error(`It is not known where the helper has put outputs: ${unknown}`)
      const outputs = places.flatMap(({ place, names }): readonly FoundOutput[] => {
        try {
          return findOutputs(place, of).filter(({ output }) => names?.includes(output) !== false)
        } catch (error) {
          more ??= notLookedAt(place, error)
          return []
        }
      })
      return { outputs, more }
    },
    publish: async (generation, place) => {
      if (place.by === 'agent') return own.publish(generation, place.directory)
      refuseDisk(place.directory, keysOnDisk)
      return helper.publish(generation, place)
    },
    remove: async (output, place) => (place.by === 'agent' ? own.remove(output, place) : helper.remove(output, place)),
    // Where there is a helper its agent.toml is the upper bound, also for what the agent could run by itself.
    reload: async (name) => (allows === null ? reloadHere(name) : helper.reload(name)),
    close: () => {
      cancel()
      cancelAwait()
      cancelConfirm()
      ending.abort()
      client.close()
    },
  }
}

/** The agent may be started before the helper: what this host wants signed does not run unsigned meanwhile. */
const isPinned = (agentToml: string, trust: Trust): boolean => {
  const read = readAgentToml(agentToml, trust)
  return pinsStatementKeys(read.kind === 'allowed' ? read.toml : nothingAllowed)
}

const startsPrograms = ({ services, checks }: AnswerOf<'hello'>): boolean => services.length + checks.length > 0

const noPlace =
  'This host has no place for it: start the agent with --publish DIR, or have the helper allow it in /etc/muster/agent.toml'

const notLookedAt = ({ directory }: Place, error: unknown): Error => {
  const why = `${directory} cannot be searched for outputs of before (${errno(error) ?? String(error)})`
  return errno(error) === 'EACCES'
    ? new LeftBehind(`${why}: let the user of the agent read it, or remove by hand what is not wanted there`)
    : new Error(why)
}

/** A folder such as /tmp counts, for root as well: a socket that another user has made there is that user's, and refused. */
const faultOfSocket = (socket: string): string | null =>
  faultOfPath(socket, { ...ownTrust(), stickyFolders: true }, { kind: 'socket', links: 'followed' })

/**
 * Where agent.toml lists no service or no check, these run as on a host without a helper. A host that has pinned statement keys starts
 * nothing but what was signed: the helper refuses there what it does not list, and the agent runs nothing itself. Left out: it is not
 * known what it lists.
 */
const runsOf = (client: HelperClient, takesOverlay: () => boolean, allows?: AnswerOf<'hello'>): HelperRuns => ({
  isKnown: allows !== undefined,
  services:
    allows?.services.length === 0 && allows.overlays !== 'signed'
      ? null
      : {
          start: ({ overlay, ...request }) =>
            client.ask('service.start', { ...request, ...(takesOverlay() && { overlay }) }),
          stop: (request) => client.ask('service.stop', request),
          status: () => client.ask('service.status', {}),
        },
  checks:
    allows?.checks.length === 0 && allows.overlays !== 'signed'
      ? null
      : {
          run: ({ overlay, ...request }) => client.ask('check.run', { ...request, ...(takesOverlay() && { overlay }) }),
        },
  statements:
    allows?.verbs.includes('overlay.take') === true
      ? {
          nonce: () => client.ask('overlay.nonce', {}),
          take: (request) => client.ask('overlay.take', request),
        }
      : null,
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
