// A connection to the plane, wherever it is now and whatever this machine's clock says; or why there is none.

import type { Purpose } from '#domain/failure-class.ts'
import { isIP } from '#platform/addresses.ts'
import { errno } from '#platform/files.ts'
import { connectTls, targetOf, trustTheHandshake, type TlsSocket } from '#platform/tls-client.ts'
import type { AgentParts } from './agent-deps.ts'
import { askTime, type Pinned } from './ask-time.ts'
import {
  openJudgedConnection,
  openUndatedConnection,
  type ClientCertificate,
  type JudgedTarget,
  type ServerTrust,
} from './enrollment/verified-connection.ts'
import { learnTime } from './learn-time.ts'
import { observedTrouble } from './observed-trouble.ts'
import { failureFrom, isAboutDates, noAnswer, wrongDates, type PlaneFailure } from './plane-failure.ts'

export type PlaneTarget = {
  readonly url: URL
  readonly trust: ServerTrust
  readonly client: ClientCertificate | null
  /** `runtime` unless said: decides how a server that is not trusted is classified. */
  readonly purpose?: Purpose
  /** Whose statements of time count, where it is not the identity that says so. */
  readonly pinned?: Pinned
}

export type Connected = { readonly kind: 'connected'; readonly socket: TlsSocket; readonly address: string }

export type ConnectingAgent = Pick<
  AgentParts,
  'clock' | 'timers' | 'random' | 'log' | 'resolve' | 'addresses' | 'keeper' | 'board' | 'vitals'
>

const mostAddresses = 4
const aloneTimeoutMs = 10_000
const perAddressTimeoutMs = 5_000
/** No further address is tried after this long. */
const triesWithinMs = 20_000

export const connectPlane = async (
  agent: ConnectingAgent,
  target: PlaneTarget,
  signal: AbortSignal,
): Promise<Connected | PlaneFailure> => {
  const { host } = targetOf(target.url)
  if (isIP(host)) return connectTo(agent, target, host, aloneTimeoutMs, signal)
  const sinceMs = agent.clock.monotonicMs()
  const inTime = (): boolean => agent.clock.monotonicMs() - sinceMs < triesWithinMs && !signal.aborted

  const resolved = await whereItLeads(agent, target, host)
  let failure: PlaneFailure = resolved.failure
  for (const address of resolved.addresses) {
    if (!inTime()) break
    const timeoutMs = resolved.addresses.length === 1 ? aloneTimeoutMs : perAddressTimeoutMs
    const outcome = await connectTo(agent, target, address, timeoutMs, signal)
    if (outcome.kind === 'connected') leadsThere(agent, host, address)
    if (outcome.kind !== 'unreachable') return outcome
    failure = outcome
  }
  const remembered = agent.addresses.lastGood(host).filter((address) => !resolved.addresses.includes(address))
  for (const address of remembered) {
    if (!inTime()) break
    const outcome = await connectTo(agent, target, address, perAddressTimeoutMs, signal)
    if (outcome.kind === 'stopped') return outcome
    if (outcome.kind !== 'connected') continue
    leadsElsewhere(agent, host, address, failure)
    return outcome
  }
  return signal.aborted ? { kind: 'stopped' } : alsoTried(failure, remembered.length)
}

type Resolved = { readonly addresses: readonly string[]; readonly failure: PlaneFailure }

const whereItLeads = async (agent: ConnectingAgent, target: PlaneTarget, host: string): Promise<Resolved> => {
  const url = target.url.origin
  const silent = { kind: 'no-answer', code: 'ENOTFOUND', url, address: null, lastGoodTried: 0 } as const
  try {
    const addresses = (await agent.resolve(host)).slice(0, mostAddresses)
    return { addresses, failure: noAnswer(url, `${host} has no address`, silent) }
  } catch (error) {
    const code = errno(error) ?? 'ENOTFOUND'
    return { addresses: [], failure: noAnswer(url, `${host} leads nowhere (${code})`, { ...silent, code }) }
  }
}

const leadsThere = ({ addresses, board, log }: ConnectingAgent, host: string, address: string): void => {
  addresses.worked(host, address)
  if (!addresses.found(host)) return
  log.info({ host, address }, 'the name leads to the plane again')
  board.clear('endpoints')
}

const leadsElsewhere = (
  { addresses, board, vitals, log }: ConnectingAgent,
  host: string,
  address: string,
  failure: PlaneFailure,
): void => {
  addresses.worked(host, address)
  const code = failure.kind === 'unreachable' ? String(failure.trouble.evidence['code'] ?? 'UNKNOWN') : 'UNKNOWN'
  const text = `The name ${host} does not lead to the plane (${code}); it is reached at ${address}, where it was last.`
  const what = observedTrouble('endpoint_profile_drift', text, { kind: 'lost-name', name: host, code, address })
  board.trouble('endpoints', what, null)
  if (!addresses.lost(host)) return
  vitals.drifted()
  log.warn({ code: what.code, next: what.next }, what.text)
}

const alsoTried = (failure: PlaneFailure, lastGoodTried: number): PlaneFailure => {
  if (failure.kind !== 'unreachable' || lastGoodTried === 0) return failure
  const { trouble } = failure
  return {
    ...failure,
    trouble: { ...trouble, evidence: { ...trouble.evidence, last_good_tried: lastGoodTried } },
  }
}

/** At one address. A server that is the plane but for its dates is asked what time it is, and judged at that time. */
const connectTo = async (
  agent: ConnectingAgent,
  target: PlaneTarget,
  address: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Connected | PlaneFailure> => {
  const { url, trust, purpose = 'runtime' } = target
  const judging: JudgedTarget = { url, address, trust, purpose, timeoutMs, client: null }
  const first = await openBelieving(agent, target, judging, signal)
  const pinned = target.pinned ?? pinnedOf(agent)
  if (!isAboutDates(first) || pinned === null) return first
  const undated = await openUndatedConnection(agent, judging, signal)
  if (undated.kind !== 'undated') return undated
  const timeMs = await askTime(agent, undated.socket, url, pinned, signal)
  if (timeMs === null) return signal.aborted ? { kind: 'stopped' } : first
  learnTime(agent, timeMs)
  const second = await openBelieving(agent, target, judging, signal)
  if (!isAboutDates(second)) return second
  const seen = { kind: 'server-dates', url: url.origin, for: purpose, nowMs: agent.clock.nowMs() } as const
  return wrongDates({ ...seen, validity: undated.validity, stated: true })
}

/** By Node's own check while the clock is right; by ours, at the time we believe, while it is not. */
const openBelieving = async (
  agent: ConnectingAgent,
  target: PlaneTarget,
  judging: JudgedTarget,
  signal: AbortSignal,
): Promise<Connected | PlaneFailure> => {
  const address = judging.address ?? targetOf(target.url).host
  if (target.trust.kind === 'roots' && agent.clock.offsetMs() === 0) {
    return openOrdinary(agent, target, target.trust.roots, address, judging, signal)
  }
  const bare = await openJudgedConnection(agent, judging, signal)
  if (bare.kind !== 'verified') return bare
  if (target.client === null) return { kind: 'connected', socket: bare.socket, address }
  // Our certificate goes only to a server that has been verified. Node sends it before we can look, so we look first.
  bare.socket.destroy()
  const client = { ...target.client, onlyToLeaf: bare.leaf }
  const known = await openJudgedConnection(agent, { ...judging, client }, signal)
  return known.kind === 'verified' ? { kind: 'connected', socket: known.socket, address } : known
}

const openOrdinary = async (
  agent: ConnectingAgent,
  { url, client }: PlaneTarget,
  roots: readonly string[],
  address: string,
  { timeoutMs, purpose }: JudgedTarget,
  signal: AbortSignal,
): Promise<Connected | PlaneFailure> => {
  const shown = client === null ? {} : { cert: client.certPem, key: client.keyPem }
  const credentials = { ca: [...roots], ...shown, rejectUnauthorized: true }
  try {
    const where = { ...targetOf(url), address, timeoutMs, credentials, vet: trustTheHandshake }
    const socket = await connectTls(agent.timers, where, signal)
    return { kind: 'connected', socket, address }
  } catch (error) {
    return failureFrom(error, url.origin, agent.clock.nowMs(), { for: purpose, address })
  }
}

const pinnedOf = ({ keeper }: ConnectingAgent): Pinned | null => {
  const { identity } = keeper.credentials()
  const statementKeys = identity?.recovery?.trust.statement_keys ?? []
  return identity === null || statementKeys.length === 0 ? null : { domain: identity.domain, statementKeys }
}
