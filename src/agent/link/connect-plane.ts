// A connection to the plane, wherever it is now; or why there is none. Names are asked first, memory second.

import { isIP } from '#platform/resolve-name.ts'
import { errno } from '#platform/files.ts'
import { targetOf } from '#platform/tls-client.ts'
import { connectAt, type Connected, type ConnectingAgent, type PlaneTarget } from './connect-at.ts'
import type { Identity } from '#agent/state/credentials.ts'
import { observedTrouble } from '#agent/core/trouble.ts'
import { isAboutName, noAnswer, type PlaneFailure } from './plane-failure.ts'
import { shownToPlane } from './verified-connection.ts'

const mostAddresses = 4
const aloneTimeoutMs = 10_000
const perAddressTimeoutMs = 5_000
/** No further address is tried after this long. */
const triesWithinMs = 30_000

/** As this node: trusting the roots that it was given, and with its certificate. */
export const connectAs = (
  agent: ConnectingAgent,
  identity: Identity,
  url: URL,
  signal: AbortSignal,
): Promise<Connected | PlaneFailure> => {
  const trust = { kind: 'roots', roots: identity.roots } as const
  return connectPlane(agent, { url, trust, plane: identity, client: shownToPlane(identity.current) }, signal)
}

export const connectPlane = async (
  agent: ConnectingAgent,
  target: PlaneTarget,
  signal: AbortSignal,
): Promise<Connected | PlaneFailure> => {
  const { host } = targetOf(target.url)
  if (isIP(host)) return connectAt(agent, target, host, aloneTimeoutMs, signal)
  const sinceMs = agent.clock.monotonicMs()
  const inTime = (): boolean => agent.clock.monotonicMs() - sinceMs < triesWithinMs && !signal.aborted

  const resolved = await whereItLeads(agent, target, host, signal)
  let failure: PlaneFailure = resolved.failure
  for (const address of resolved.addresses) {
    if (!inTime()) break
    const timeoutMs = resolved.addresses.length === 1 ? aloneTimeoutMs : perAddressTimeoutMs
    const outcome = await connectAt(agent, target, address, timeoutMs, signal)
    if (outcome.kind === 'connected') leadsThere(agent, host, address)
    if (outcome.kind !== 'unreachable' && outcome.kind !== 'untrusted') return outcome
    failure = outcome
  }
  const remembered = agent.addresses.lastGood(host).filter((address) => !resolved.addresses.includes(address))
  for (const address of remembered) {
    if (!inTime()) break
    const outcome = await connectAt(agent, target, address, perAddressTimeoutMs, signal)
    if (outcome.kind === 'stopped') return outcome
    // It says more than a name that leads nowhere: the plane is there and has another one.
    if (outcome.kind !== 'connected') {
      if (isAboutName(outcome)) failure = outcome
      continue
    }
    leadsElsewhere(agent, host, address, failure)
    return outcome
  }
  return signal.aborted ? { kind: 'stopped' } : alsoTried(failure, remembered.length)
}

type Resolved = { readonly addresses: readonly string[]; readonly failure: PlaneFailure }

const whereItLeads = async (
  agent: ConnectingAgent,
  target: PlaneTarget,
  host: string,
  signal: AbortSignal,
): Promise<Resolved> => {
  const url = target.url.origin
  const silent = { kind: 'no-answer', code: 'ENOTFOUND', url, address: null, lastGoodTried: 0 } as const
  try {
    const addresses = (await agent.resolve(host, signal)).slice(0, mostAddresses)
    return { addresses, failure: noAnswer(url, `${host} has no address`, silent) }
  } catch (error) {
    const code = errno(error) ?? 'ENOTFOUND'
    return { addresses: [], failure: noAnswer(url, `${host} leads nowhere (${code})`, { ...silent, code }) }
  }
}

const leadsThere = ({ addresses, record, log }: ConnectingAgent, host: string, address: string): void => {
  addresses.worked(host, address)
  if (!addresses.found(host)) return
  log.info({ host, address }, 'the name leads to the plane again')
  record.clear('endpoints')
}

const leadsElsewhere = (
  { addresses, record, log }: ConnectingAgent,
  host: string,
  address: string,
  failure: PlaneFailure,
): void => {
  addresses.worked(host, address)
  const code = 'trouble' in failure ? String(failure.trouble.evidence['code'] ?? 'UNKNOWN') : 'UNKNOWN'
  const text = `The name ${host} does not lead to the plane (${code}); it is reached at ${address}, where it was last.`
  const what = observedTrouble('endpoint_profile_drift', text, { kind: 'lost-name', name: host, code, address })
  record.trouble('endpoints', what, null)
  if (!addresses.lost(host)) return
  record.count({ kind: 'drifted' })
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
