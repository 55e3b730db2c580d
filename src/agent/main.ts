// The agent: comes by an identity, lives with it, and comes by another when the plane asks for that.

import type { AgentDeps, AgentParts } from './agent-deps.ts'
import type { AgentConfig } from './config.ts'
import { enroll } from './enrollment/enroll.ts'
import { findJoin } from './enrollment/join-source.ts'
import {
  DamagedCredentials,
  fileCredentialStore,
  identityFile,
  memoryCredentialStore,
} from './identity/credential-store.ts'
import { openKeeper, type IdentityKeeper } from './identity/identity-keeper.ts'
import { firstIdentity, type IdentityProvider, type Need } from './identity/provider.ts'
import type { AgentOutcome } from './outcome.ts'
import { pause } from './pause.ts'
import { serve } from './serve.ts'
import { holderOf } from './state-folder.ts'
import { openStatusBoard, type StatusBoard } from './status-board.ts'
import { trouble } from './trouble.ts'

export type { AgentDeps } from './agent-deps.ts'
export type { AgentOutcome } from './outcome.ts'

/** Runs until `deps.signal` is aborted or going on is pointless. Refusals and trouble are outcomes; only bugs throw. */
export const runAgent = async (config: AgentConfig, deps: AgentDeps): Promise<AgentOutcome> => {
  const holder = holderOf(config.stateFolder)
  if (holder !== null) {
    const text = `Another agent (process ${holder}) runs on ${config.stateFolder}.`
    return {
      kind: 'misconfigured',
      trouble: trouble('state_in_use', text, 'Stop it first, or give this one another --state'),
    }
  }
  const board = openStatusBoard(deps, config.stateFolder)
  const outcome = await live(config, deps, board)
  board.close(outcome)
  if (outcome.kind === 'stopped') deps.log.info('stopped')
  else
    deps.log.error(
      { outcome: outcome.kind, code: outcome.trouble.code, next: outcome.trouble.next },
      outcome.trouble.text,
    )
  return outcome
}

const live = async (config: AgentConfig, deps: AgentDeps, board: StatusBoard): Promise<AgentOutcome> => {
  const keeper = openedKeeper(config)
  if ('kind' in keeper) return keeper
  const agent: AgentParts = { ...deps, config, keeper, board }
  const providers = [storedIdentity(agent), enrollment(agent)]

  for (let need: Need = 'start'; !deps.signal.aborted; need = 'rejoin') {
    const provided = await firstIdentity(providers, need, nothingToGoBy(config, need))
    if (provided.kind === 'failed' && !(await worthWaiting(agent, need, provided.outcome))) return provided.outcome
    const end = await serve(agent)
    if (end.kind === 'revoked') return end
    if (end.kind === 'stopped') break
    board.phase('rejoining')
    board.trouble('enrollment', end.trouble, null)
    deps.log.warn(
      { code: end.trouble.code, next: end.trouble.next },
      `this identity is not taken any more: ${end.trouble.text}`,
    )
  }
  return { kind: 'stopped' }
}

const openedKeeper = (config: AgentConfig): IdentityKeeper | AgentOutcome => {
  try {
    return openKeeper(config.keyStorage === 'memory' ? memoryCredentialStore : fileCredentialStore(config.stateFolder))
  } catch (error) {
    const file = identityFile(config.stateFolder)
    const text = error instanceof DamagedCredentials ? error.message : `${file} cannot be read: ${String(error)}`
    const next = `Restore it, or move it away and enrol again with a new token: muster token create --node ID --replace`
    return { kind: 'misconfigured', trouble: trouble('state_damaged', text, next) }
  }
}

const storedIdentity = ({ keeper }: AgentParts): IdentityProvider => ({
  name: 'stored',
  provide: (need) =>
    Promise.resolve({ kind: need === 'start' && keeper.credentials().identity !== null ? 'identity' : 'not-mine' }),
})

const enrollment = (agent: AgentParts): IdentityProvider => ({
  name: 'enrollment',
  provide: async () => {
    const found = findJoin(agent.config, agent.keeper.credentials().identity)
    if (found.kind === 'none') return { kind: 'not-mine' }
    if (found.kind === 'unreadable') {
      const what = trouble('join_string_unusable', `${found.why}.`, 'Make a new one: muster token create --node ID')
      return { kind: 'failed', outcome: { kind: 'misconfigured', trouble: what } }
    }
    agent.board.phase('enrolling')
    return enroll(agent, found.join)
  },
})

const nothingToGoBy = ({ join, stateFolder }: AgentConfig, need: Need): ReturnType<typeof trouble> => {
  const looked = join.kind === 'file' ? `no join string in ${join.path}` : 'only a join string that has been used'
  return need === 'start'
    ? trouble(
        'no_identity',
        `There is no identity in ${stateFolder} and ${looked}.`,
        'Make one: muster token create --node ID, and pass it by --join-file',
      )
    : trouble(
        'no_way_back',
        `The plane does not take this identity, and there is ${looked}.`,
        'See why: muster node show ID; then muster token create --node ID',
      )
}

const waitMs = 30_000
const lookEveryMs = 1_000

/** An agent that had an identity stays up: an operator may release the node or bring a new join string. */
const worthWaiting = async (agent: AgentParts, need: Need, outcome: AgentOutcome): Promise<boolean> => {
  if (need === 'start' || outcome.kind === 'stopped' || outcome.kind === 'revoked') return false
  const { code, next, text } = outcome.trouble
  const delayMs = waitMs * (1 + agent.random.unit())
  const untilMs = agent.clock.monotonicMs() + delayMs
  agent.board.trouble('enrollment', outcome.trouble, agent.clock.nowMs() + delayMs)
  agent.log.warn({ code, next, waitMs: Math.round(delayMs) }, text)
  const invited = (): boolean => findJoin(agent.config, agent.keeper.credentials().identity).kind === 'join'
  const wasInvited = invited()
  while (!agent.signal.aborted && agent.clock.monotonicMs() < untilMs && (wasInvited || !invited())) {
    await pause(agent.timers, lookEveryMs, agent.signal)
  }
  return true
}
