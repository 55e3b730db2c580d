// The two calls of programs: one leaf for a new key, and the revocation lists. What fails is tried again by the rules of the
// agent's other calls.

import type { AgentParts } from '#agent/core/agent-parts.ts'
import { cappedByLifetimeMs } from '#agent/core/backoff.ts'
import { nextTry, operatorCapMs } from '#agent/link/next-try.ts'
import { callPlane, type CallingAgent } from '#agent/link/plane-client.ts'
import { unusableAnswer, type PlaneFailure } from '#agent/link/plane-failure.ts'
import type { Identity } from '#agent/state/credentials.ts'
import { makeCsr } from '#pki/csr.ts'
import { generateKey } from '#pki/keys.ts'
import { longestProgramLists, programsApi, type ConfigOutput, type ProgramLists } from '#wire/programs/programs-api.ts'
import { leafFrom, type GivenLeaf } from './check-answer.ts'
import { withLeafRequest, type LeafRequest, type LeafStore } from './leaf-store.ts'
import { sameTerms, termsOf } from './wanted-outputs.ts'

export type AskingAgent = CallingAgent & Pick<AgentParts, 'nudge'>

/** The answer is checked. The request is kept first, so that a crash repeats it and gets the same leaf. */
export const askForLeaf = async (
  agent: AskingAgent,
  identity: Identity,
  output: ConfigOutput,
  store: LeafStore,
): Promise<GivenLeaf | PlaneFailure> => {
  const request = openRequest(identity, output, store)
  const answer = await callPlane(agent, identity, {
    endpoint: programsApi.issue,
    params: { output: output.name },
    json: {
      csr: request.csrPem,
      ...(identity.understands.includes('outside_roots') && { outside_roots: true }),
    },
  })
  if (answer.kind !== 'answer') return answer
  const of = { domain: identity.domain, node: identity.nodeId, output: output.name }
  const given = leafFrom(request, output, answer.value, of, agent.clock.nowMs())
  return given.kind === 'leaf' ? given : unusableAnswer(given.why)
}

const openRequest = (identity: Identity, output: ConfigOutput, store: LeafStore): LeafRequest => {
  const terms = termsOf(output, identity.epoch)
  const open = store.current().requests.find((request) => sameTerms(request, terms))
  if (open !== undefined) return open
  const key = generateKey(output.key_type)
  const request = { ...terms, keyPem: key.pkcs8Pem(), csrPem: makeCsr(key, `${identity.nodeId}/${output.name}`) }
  const { domain, nodeId: node } = identity
  // On a full disk the key is in memory only: a crash then costs another leaf, and waiting would cost the program its own.
  store.keep({ ...withLeafRequest(store.current(), output.name, request), of: { domain, node } })
  return request
}

export const askForLists = async (
  agent: AskingAgent,
  identity: Identity,
): Promise<{ readonly kind: 'answer'; readonly value: ProgramLists } | PlaneFailure> =>
  callPlane(agent, identity, { endpoint: programsApi.lists, json: null, longest: longestProgramLists })

export type Again = { readonly afterMs: number; readonly withNewKey: boolean }

/** `remainingMs`: of the leaf at hand; null: there is none. */
export const askAgain = (
  failure: Exclude<PlaneFailure, { kind: 'stopped' }>,
  attempt: number,
  remainingMs: number | null,
  unit: number,
): Again => {
  const next = nextTry('recover', failure, attempt, unit)
  const delayMs = next.kind === 'wait' ? next.waitMs : operatorCapMs
  return {
    afterMs: Math.max(shortestMs, remainingMs === null ? delayMs : cappedByLifetimeMs(delayMs, remainingMs)),
    withNewKey: next.kind === 'wait' && next.forget === 'key',
  }
}

const shortestMs = 200
