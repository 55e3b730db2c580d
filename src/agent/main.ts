// The agent: comes by an identity, lives with it, and comes by another when the plane asks for that.

import type { Log } from '#platform/log.ts'
import type { AgentHost, AgentParts } from '#agent/core/agent-parts.ts'
import { fullJitterMs } from '#agent/core/backoff.ts'
import { openConfigKeeper } from '#agent/channel/last-config.ts'
import type { AgentConfig } from '#agent/core/config.ts'
import { findJoin } from '#agent/enrollment/join-source.ts'
import {
  DamagedCredentials,
  fileCredentialStore,
  identityFile,
  memoryCredentialStore,
  type CredentialStore,
} from '#agent/state/credential-store.ts'
import { openKeeper, type IdentityKeeper } from '#agent/state/identity-keeper.ts'
import { acquireIdentity } from '#agent/identity/acquire.ts'
import type { IdentityProvider, Need } from '#agent/state/provider.ts'
import { damagedCode, soundCredentials } from '#agent/state/sound-credentials.ts'
import { openJudgedClock, type JudgedClock } from '#agent/core/judged-clock.ts'
import { openKnownAddresses } from '#agent/link/known-addresses.ts'
import { openKnownMarks } from '#agent/link/known-marks.ts'
import { openSightingKeeper } from '#agent/continuity/last-sighting.ts'
import { observedTrouble } from '#agent/core/trouble.ts'
import type { AgentOutcome } from '#agent/core/outcome.ts'
import { showMetrics } from '#agent/diagnostics/metrics.ts'
import { openOverlayKeeper } from '#agent/fleet/overlay-keeper.ts'
import { openBearerTurns } from '#agent/recovery/bearer-turns.ts'
import { openEpisode } from '#agent/recovery/episode.ts'
import { nudgedPause, pause } from '#agent/core/pause.ts'
import { openRepairBundles } from '#agent/recovery/repair-file.ts'
import { waitForCredential, type CredentialWatcher } from '#agent/recovery/wait-for-credential.ts'
import { repairRequested } from '#agent/recovery/way-back.ts'
import { openOutbox } from '#agent/diagnostics/outbox.ts'
import { openDiagnostics, type Diagnostics } from '#agent/diagnostics/open-diagnostics.ts'
import { serve } from './serve.ts'
import { takeStateFolder } from '#agent/identity/state-folder.ts'
import { withReserve, type AgentStorage } from '#agent/state/storage.ts'
import { isInvitedAnew, noWayIn, waysIn } from '#agent/identity/ways-in.ts'
import { openProgramKeeper } from '#agent/programs/program-keeper.ts'
import type { NodeOfPrograms } from '#agent/programs/publisher.ts'
import { openHostPublisher } from './host-publisher.ts'
import { openRecoveryRotation } from '#agent/state/recovery-rotation.ts'
import { openTaskLink } from '#agent/tasks/task-link.ts'
import { openWireguard } from '#agent/network/wireguard-network.ts'

export type { AgentHost } from '#agent/core/agent-parts.ts'
export type { AgentOutcome } from '#agent/core/outcome.ts'

/** Sources of an identity that are preferred to the plane's own; a later one for SPIRE takes its place here. */
export type BetterSources = (agent: AgentParts) => readonly IdentityProvider[]

const noBetterSources: BetterSources = () => []

/** Runs until `host.signal` is aborted or going on is pointless. Refusals and trouble are outcomes; only bugs throw. */
export const runAgent = async (
  config: AgentConfig,
  host: AgentHost,
  better: BetterSources = noBetterSources,
): Promise<AgentOutcome> => {
  const folder = takeStateFolder(config.stateFolder)
  if (folder.kind === 'not-ours') return { kind: 'misconfigured', trouble: folder.trouble }
  try {
    return await runHere(config, host, better)
  } finally {
    folder.release()
  }
}

const runHere = async (config: AgentConfig, host: AgentHost, better: BetterSources): Promise<AgentOutcome> => {
  const clock = openJudgedClock(host.clock)
  const { timers, log } = host
  const diagnostics = openDiagnostics({ clock, timers, log }, config)
  const outcome = await live(config, host, clock, diagnostics, better)
  diagnostics.close(outcome)
  return outcome
}

const live = async (
  config: AgentConfig,
  host: AgentHost,
  clock: JudgedClock,
  { record, storage, log }: Diagnostics,
  better: BetterSources,
): Promise<AgentOutcome> => {
  const { stateFolder } = config
  const { timers, random, resolve, reached, nudge, signal } = host
  const core = { clock, timers, random, log }
  const keeper = openedKeeper(config, storage, host.log)
  if ('kind' in keeper) return keeper
  const instance = random.bytes(16).toString('base64url')
  const episode = openEpisode(clock, random, keeper.credentials().request)
  const lastConfig = openConfigKeeper(stateFolder)
  const wireguard = openWireguard(core, config, record, storage)
  // The network is up from what is on disk before the plane has been reached.
  if (keeper.credentials().identity !== null) wireguard.configured(lastConfig.current()?.wireguard)
  const episodeRecord = episode.listening(record)
  const keysGoToDisk = (): boolean => keysOnDisk(config, keeper)
  const publisher = openHostPublisher(core, config, record, keysGoToDisk)
  const overlay = openOverlayKeeper(core, config, { keeper, lastConfig, record: episodeRecord }, wireguard.kind, {
    helped: publisher.runs,
  })
  const nodeNow = (): NodeOfPrograms | null => {
    const { identity } = keeper.credentials()
    return identity === null ? null : { domain: identity.domain, node: identity.nodeId }
  }
  const ofPrograms = { config, keysOnDisk: keysGoToDisk, nodeNow, lastConfig, record, storage }
  const programs = openProgramKeeper(core, ofPrograms, publisher)
  const rotation = openRecoveryRotation()
  const outbox = openOutbox(instance, (count, reason) =>
    record.count({ kind: 'dropped', source: 'reports', reason, count }),
  )
  const agent: AgentParts = {
    clock,
    timers,
    random,
    log,
    resolve,
    reached,
    nudge,
    signal,
    config,
    addresses: openKnownAddresses(stateFolder),
    marks: openKnownMarks(stateFolder),
    bundles: openRepairBundles(stateFolder),
    keeper,
    lastConfig,
    record: episodeRecord,
    episode,
    storage,
    instance,
    sightings: openSightingKeeper(stateFolder, storage),
    outbox,
    wireguard,
    overlay,
    programs,
    tasks: openTaskLink(publisher.tasks, rotation),
    rotation,
    bearerTurns: openBearerTurns(timers),
  }
  // Before the first call: the services of a node do not depend on a reachable plane.
  overlay.start()
  void publisher.ready.then(() => programs.start())
  const shown = await showMetrics(agent)
  try {
    const outcome = await goOn(agent, waysIn(agent, better(agent)))
    if (outcome.kind === 'revoked') {
      await Promise.all([haltServices(agent), wireguard.withdraw(), programs.withdraw()])
      // What a helper that is away has written stays valid for some: the agent ends when it is gone.
      await programs.withdrawn(signal)
    }
    return outcome
  } finally {
    await Promise.all([overlay.close(), wireguard.close(), programs.close()])
    publisher.close()
    await shown.close()
  }
}

const haltAgainMs = 5_000

/** A service that the helper runs outlives both of them: the agent ends when a helper that is away has come back and stopped it. */
const haltServices = async ({ overlay, timers, signal }: AgentParts): Promise<void> => {
  while (!(await overlay.halt()) && !signal.aborted) await pause(timers, haltAgainMs, signal)
}

const goOn = async (agent: AgentParts, providers: readonly IdentityProvider[]): Promise<AgentOutcome> => {
  let shortLived = 0
  let wasRevoked = false
  for (let need: Need = 'start'; !agent.signal.aborted; need = 'rejoin') {
    const provided = await acquireIdentity(agent, providers, need, noWayIn(agent, need))
    if (provided.kind === 'failed' && (wasRevoked || !(await worthWaiting(agent, need, provided.outcome))))
      return provided.outcome
    const sinceMs = agent.clock.monotonicMs()
    const end = await serve(agent, providers)
    if (end.kind === 'stopped') break
    // What failed before a bundle was brought stays the cause of the recovery.
    if (end.trouble !== repairRequested) agent.episode.failed(end.trouble)
    wasRevoked = end.kind === 'revoked'
    if (wasRevoked) await Promise.all([agent.overlay.halt(), agent.wireguard.withdraw(), agent.programs.withdraw()])
    if (end.kind === 'revoked' && !isInvitedAnew(agent)) return end
    const lasted = agent.clock.monotonicMs() - sinceMs > settledMs(agent)
    shortLived = lasted || provided.kind === 'failed' ? 0 : shortLived + 1
    agent.record.phase('rejoining')
    const retryAfterMs = end.kind === 'rejoin' ? Math.min(end.afterMs, longestRejoinMs) : 0
    agent.record.trouble('enrollment', end.trouble, retryAfterMs === 0 ? null : agent.clock.nowMs() + retryAfterMs)
    agent.log.warn(
      { code: end.trouble.code, next: end.trouble.next },
      `this identity is not taken any more: ${end.trouble.text}`,
    )
    if (retryAfterMs > 0) await nudgedPause(agent, retryAfterMs)
    // A plane that hands out identities and takes none of them must not be asked in a circle. The first is no circle:
    // it may be one from before a restart.
    if (shortLived > 1) {
      const jitterMs = fullJitterMs(shortLived, shortestRejoinMs, longestRejoinMs, agent.random.unit())
      await nudgedPause(agent, shortestRejoinMs + jitterMs)
    }
  }
  return { kind: 'stopped' }
}

/** A minute, or half the life of a certificate that has less. */
const settledMs = ({ keeper }: Pick<AgentParts, 'keeper'>): number =>
  Math.min(60_000, (keeper.credentials().identity?.profile.lifetime_ms ?? 120_000) / 2)

const shortestRejoinMs = 2_000
const longestRejoinMs = 300_000

const keysOnDisk = ({ keyStorage }: AgentConfig, keeper: IdentityKeeper): boolean =>
  keyStorage === 'file' && (keeper.credentials().identity?.profile.key_storage ?? 'file') === 'file'

const openedKeeper = (config: AgentConfig, storage: AgentStorage, log: Log): IdentityKeeper | AgentOutcome => {
  const onDisk = withReserve(fileCredentialStore(config.stateFolder), storage)
  const store = config.keyStorage === 'memory' ? memoryCredentialStore : onDisk
  try {
    const { credentials, dropped } = soundCredentials(store.load())
    for (const what of dropped) log.warn({ code: damagedCode, what }, 'damaged credentials are ignored')
    const keeper = openKeeper({ ...store, load: () => credentials })
    if (dropped.length > 0) keeper.retry()
    return keeper
  } catch (error) {
    if (error instanceof DamagedCredentials && canBeginAnew(config)) return begunAnew(store, error, log)
    const file = identityFile(config.stateFolder)
    const fault = error instanceof DamagedCredentials ? error.message : `${file} cannot be read: ${String(error)}`
    const what = observedTrouble('state_damaged', fault, {
      kind: 'damaged-credentials',
      part: 'file',
      fault,
      serial: null,
    })
    const next = `Restore it; or bring a repair bundle: muster node repair-bundle ID --reason REASON --out FILE, then muster agent repair --bundle-file FILE; or a new token: muster token create --node ID --replace; then start the agent`
    return { kind: 'misconfigured', trouble: { ...what, next } }
  }
}

/** An operator has brought a bundle or a join string: who this machine was is not needed. */
const canBeginAnew = (config: AgentConfig): boolean =>
  openRepairBundles(config.stateFolder).find(null) !== null ||
  (config.join.kind === 'file' && findJoin(config, null).kind === 'join')

const begunAnew = (store: CredentialStore, { message }: Error, log: Log): IdentityKeeper => {
  store.setAside()
  log.error({ code: damagedCode }, `${message}; it is set aside, and what an operator has brought is used instead`)
  return openKeeper(store)
}

type PatientAgent = CredentialWatcher & Pick<AgentParts, 'record' | 'log' | 'random'>

const waitMs = 30_000

/** An agent that had an identity stays up: an operator may release the node, or bring a join string or a bundle. */
const worthWaiting = async (agent: PatientAgent, need: Need, outcome: AgentOutcome): Promise<boolean> => {
  if (need === 'start' || outcome.kind === 'stopped' || outcome.kind === 'revoked') return false
  const { code, next, text } = outcome.trouble
  const delayMs = waitMs * (1 + agent.random.unit())
  agent.record.trouble('enrollment', outcome.trouble, agent.clock.nowMs() + delayMs)
  agent.log.warn({ code, next, waitMs: Math.round(delayMs) }, text)
  await waitForCredential(agent, delayMs)
  return true
}
