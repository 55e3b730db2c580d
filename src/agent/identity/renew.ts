// One renewal: a new key and request, durable before they are sent; the answer checked, kept, and in force.

import type { AgentParts } from '../agent-deps.ts'
import { keyTypeFor, newKeyRequest } from '../keys/key-request.ts'
import { callPlane } from '../plane-client.ts'
import { unusableAnswer, type PlaneFailure } from '../plane-failure.ts'
import { trouble } from '../trouble.ts'
import { RenewResponse } from '#wire/node-api.ts'
import { faultOfEndpoints, faultOfProfile, faultOfNewRoots, generationFrom } from './certificate-answer.ts'
import { renewedTo, requestFor, withRequest, type Identity, type KeyRequest } from './credentials.ts'

export type Renewed = { readonly kind: 'renewed'; readonly serial: string; readonly persisted: boolean }

export const renewOnce = async (agent: AgentParts, identity: Identity): Promise<Renewed | PlaneFailure> => {
  const request = openRequest(agent, identity)
  if (request.kind !== 'request') return request
  const answer = await callPlane(agent, identity, {
    verb: 'renew',
    json: { csr: request.request.csrPem },
    answer: RenewResponse,
  })
  if (answer.kind !== 'answer') {
    if (answer.kind === 'refused' && keyIsUseless(answer.code)) forget(agent)
    return answer
  }
  const { certificate_chain, roots, profile, endpoints } = answer.value
  const fault = faultOfNewRoots(identity.roots, roots) ?? faultOfProfile(profile) ?? faultOfEndpoints(endpoints)
  if (fault !== null) return unusableAnswer(fault)
  const made = generationFrom(request.request, certificate_chain)
  if (made.kind === 'unusable') return unusableAnswer(made.why)
  // Read again: a trust update may have arrived while we waited.
  const latest = agent.keeper.credentials().identity ?? identity
  const kept = agent.keeper.keep(renewedTo(latest, made.generation, { profile, endpoints, roots }))
  return { kind: 'renewed', serial: made.generation.serial, persisted: kept.persisted }
}

const openRequest = (
  agent: AgentParts,
  identity: Identity,
): { kind: 'request'; request: KeyRequest } | PlaneFailure => {
  const { keeper, config, clock } = agent
  const purpose = { kind: 'renew', serial: identity.current.serial } as const
  const keyType = keyTypeFor(config.keyType, identity.profile.key_types)
  const open = requestFor(keeper.credentials(), purpose, keyType)
  if (open !== null) return { kind: 'request', request: open }
  const request = newKeyRequest(purpose, keyType, identity.nodeId, clock.nowMs())
  const kept = keeper.keepFirst(withRequest(keeper.credentials(), request))
  if (kept.persisted) return { kind: 'request', request }
  if (isLastQuarter(identity, clock.nowMs())) {
    // An identity that a crash may lose is better than one that is sure to expire.
    keeper.keep(withRequest(keeper.credentials(), request))
    return { kind: 'request', request }
  }
  const text = `The state folder cannot be written, so the renewal waits: ${kept.detail}`
  return {
    kind: 'unreachable',
    trouble: trouble('disk_trouble', text, `Make room on the disk of ${config.stateFolder}`),
  }
}

const isLastQuarter = ({ current }: Identity, nowMs: number): boolean =>
  current.notAfterMs - nowMs < (current.notAfterMs - current.issuedAtMs) / 4

const keyIsUseless = (code: string): boolean => code === 'KEY_BLOCKED' || code === 'CSR_INVALID'

const forget = ({ keeper }: AgentParts): void => void keeper.keep(withRequest(keeper.credentials(), null))
