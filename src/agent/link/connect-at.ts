// A connection to the plane at one address, also under a wrong clock; or why there is none.

import { planeMark } from '#domain/core/plane-mark.ts'
import type { Purpose } from '#domain/recovery/failure-class.ts'
import { connectTls, targetOf, type TlsSocket } from '#platform/tls-client.ts'
import type { AgentParts } from '#agent/core/agent-parts.ts'
import { askTime, type Pinned } from './ask-time.ts'
import {
  openJudgedConnection,
  objectionIn,
  openUndatedConnection,
  vetServer,
  type ClientCertificate,
  type JudgedTarget,
  type ServerTrust,
} from './verified-connection.ts'
import { learnTime } from './learn-time.ts'
import { failureFrom, isAboutDates, isAboutName, wrongDates, type PlaneFailure } from './plane-failure.ts'

/** Whose server it has to be. */
export type ExpectedPlane = {
  readonly domain: string
  /** It is known to carry its mark. */
  readonly marked: boolean
}

export type PlaneTarget = {
  readonly url: URL
  readonly trust: ServerTrust
  readonly plane: ExpectedPlane
  readonly client: ClientCertificate | null
  /** `runtime` unless said: decides how a server that is not trusted is classified. */
  readonly purpose?: Purpose
  /** Whose statements of time count, where it is not the identity that says so. */
  readonly pinned?: Pinned
}

export type Connected = { readonly kind: 'connected'; readonly socket: TlsSocket; readonly address: string }

export type ConnectingAgent = Pick<
  AgentParts,
  'clock' | 'timers' | 'random' | 'log' | 'resolve' | 'addresses' | 'keeper' | 'record'
>

/** A server that is the plane but for its dates is asked what time it is, and judged at that time. */
export const connectAt = async (
  agent: ConnectingAgent,
  target: PlaneTarget,
  address: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Connected | PlaneFailure> => {
  const { url, trust, plane, purpose = 'runtime' } = target
  const withdrawn = agent.keeper.credentials().identity?.withdrawnIssuers ?? []
  const mark = { uri: planeMark(plane.domain), required: plane.marked }
  const named: JudgedTarget = {
    ...{ url, address, trust, mark, name: 'required', withdrawn, purpose, timeoutMs },
    client: null,
  }
  const outcome = await connectDated(agent, target, named, signal)
  // A machine that recovers may know nothing but a name that the plane had. Below the recovery root the mark alone proves that
  // it is the plane, so that recovery brings the new name.
  if (purpose !== 'recovery' || !isAboutName(outcome)) return outcome
  const byMark = await connectDated(agent, target, { ...named, name: 'any' }, signal)
  // A server without the mark is of a plane before 0.4.0: its name is all that is wrong.
  return byMark.kind === 'untrusted' ? outcome : byMark
}

const connectDated = async (
  agent: ConnectingAgent,
  target: PlaneTarget,
  judging: JudgedTarget,
  signal: AbortSignal,
): Promise<Connected | PlaneFailure> => {
  const { url } = target
  const pinned = target.pinned ?? pinnedOf(agent)
  const first =
    pinned !== null && isBeforeOurs(agent)
      ? wrongDates({ ...datesOf(agent, target), validity: null, stated: false })
      : await openBelieving(agent, target, judging, signal)
  if (!isAboutDates(first) || pinned === null) return first
  const undated = await openUndatedConnection(agent.clock, agent.timers, judging, signal)
  if (undated.kind !== 'undated') return undated
  const askedAt = agent.clock.reading()
  const timeMs = await askTime(agent, undated.socket, url, pinned, signal)
  if (timeMs === null) return signal.aborted ? { kind: 'stopped' } : first
  learnTime(agent, timeMs, askedAt)
  const second = await openBelieving(agent, target, judging, signal)
  if (!isAboutDates(second)) return second
  return wrongDates({ ...datesOf(agent, target), validity: undated.validity, stated: true })
}

/**
 * The plane has dated our own certificate later than the clock says: so the clock is wrong. At such a time a server with a long
 * expired certificate could pass for the plane, so the agent asks for the time before it trusts a server.
 */
const isBeforeOurs = ({ clock, keeper }: ConnectingAgent): boolean => {
  const { identity } = keeper.credentials()
  return identity !== null && clock.nowMs() < identity.current.issuedAtMs - identity.clockToleranceMs
}

const datesOf = ({ clock }: ConnectingAgent, { url, purpose = 'runtime' }: PlaneTarget) =>
  ({ kind: 'server-dates', url: url.origin, for: purpose, nowMs: clock.nowMs() }) as const

/** By Node's own check while the clock is right; by ours, at the time we believe, while it is not, and where any name will do. */
const openBelieving = async (
  agent: ConnectingAgent,
  target: PlaneTarget,
  judging: JudgedTarget,
  signal: AbortSignal,
): Promise<Connected | PlaneFailure> => {
  const address = judging.address ?? targetOf(target.url).host
  if (target.trust.kind === 'roots' && judging.name === 'required' && agent.clock.offsetMs() === 0) {
    return openOrdinary(agent, target, target.trust.roots, address, judging, signal)
  }
  const bare = await openJudgedConnection(agent.clock, agent.timers, judging, signal)
  if (bare.kind !== 'verified') return bare
  if (target.client === null) return { kind: 'connected', socket: bare.socket, address }
  // Our certificate goes only to a server that has been verified. Node sends it before we can look, so we look first.
  bare.socket.destroy()
  const known = await openJudgedConnection(agent.clock, agent.timers, { ...judging, client: target.client }, signal)
  return known.kind === 'verified' ? { kind: 'connected', socket: known.socket, address } : known
}

const openOrdinary = async (
  agent: ConnectingAgent,
  { url, client }: PlaneTarget,
  roots: readonly string[],
  address: string,
  judging: JudgedTarget,
  signal: AbortSignal,
): Promise<Connected | PlaneFailure> => {
  const shown = client === null ? {} : { cert: client.certPem, key: client.keyPem }
  const credentials = { ca: [...roots], ...shown, rejectUnauthorized: true }
  const { timeoutMs, purpose } = judging
  try {
    const where = { ...targetOf(url), address, timeoutMs, credentials, vet: vetServer(agent.clock, judging) }
    const socket = await connectTls(agent.timers, where, signal)
    return { kind: 'connected', socket, address }
  } catch (error) {
    const objection = objectionIn(error)
    if (objection !== null) return objection
    return failureFrom(error, url.origin, agent.clock.nowMs(), { for: purpose, address })
  }
}

const pinnedOf = ({ keeper }: ConnectingAgent): Pinned | null => {
  const { identity } = keeper.credentials()
  const statementKeys = identity?.recovery?.trust.statement_keys ?? []
  return identity === null || statementKeys.length === 0 ? null : { domain: identity.domain, statementKeys }
}
