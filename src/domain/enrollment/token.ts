// Tokens as operators make and withdraw them. What a token lets in is decided in credential.ts and enrollment.ts.

import { type NodeId, noHardware, type Node } from '#domain/core/node.ts'
import { isoTime } from '#platform/clock.ts'
import { approvalComplete } from '#domain/core/approval.ts'
import { readOf, type Row, decided, entry, type Attribution, type Decided } from '#domain/core/change.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import { subjectOf } from '#domain/identity/node-certificate.ts'
import { longestTokenTtlMs, unavailableMethods, type Profile } from '#domain/core/profile.ts'
import { refuse, refuseField, refuseMethod, type Refusal } from '#domain/core/refusal.ts'
import type { Token } from '#domain/core/token.ts'
import { firstTenure, type FormerNode, readsOfAbsent } from '#domain/core/purged-node.ts'
import { newNode, registeredEntry } from './registration.ts'

export type CreateTokenFacts = {
  readonly tokenId: string
  readonly secretHash: string
  /** Null: a token of the domain. */
  readonly nodeId: NodeId | null
  readonly node: Row<Node> | null
  /** Null: the token is of the domain, or its node is in the registry. */
  readonly former: FormerNode | null
  /** For a node in the store its own, else the one it is to have. */
  readonly profile: Row<Profile>
  readonly replace: boolean
  readonly serverName: string | null
  /** Null: as long as the profile says. */
  readonly ttlMs: number | null
  readonly domain: Row<DomainSettings>
  readonly by: Attribution
  readonly nowMs: number
}

export type TokenCreated = Decided & { readonly token: Token; readonly registered: boolean }

export const decideCreateToken = (facts: CreateTokenFacts): TokenCreated | Refusal => {
  const { nodeId, node, former, profile, domain, by, nowMs } = facts
  const ttlMs = facts.ttlMs ?? profile.value.join.tokenTtlMs
  const no = ttlProblem(ttlMs) ?? profileForbids(facts) ?? (node === null ? null : nodeForbids(node.value, facts))
  if (no !== null) return no

  const newcomer =
    nodeId === null || former === null
      ? null
      : newNode({ id: nodeId, profile: profile.value.name, hardware: noHardware, ...firstTenure(former), by, nowMs })
  const registered = newcomer ?? node?.value ?? null
  const token: Token = {
    id: facts.tokenId,
    hash: facts.secretHash,
    scope: registered === null ? { kind: 'domain' } : { kind: 'node', node: registered.id, tenure: registered.tenure },
    profile: profile.value.name,
    replace: facts.replace,
    serverName: facts.serverName,
    createdBy: by.actor,
    createdAtMs: nowMs,
    expiresAtMs: nowMs + ttlMs,
    state: { kind: 'unused' },
  }
  const created = entry(
    by,
    nowMs,
    'enrollment_token.created',
    { node: nodeId, token: token.id },
    {
      token_id: token.id,
      created_by: by.actor,
      expires_at: isoTime(token.expiresAtMs),
      timestamp: isoTime(nowMs),
      node: nodeId,
      profile: token.profile,
      replace: token.replace,
    },
  )
  return {
    ...decided({
      reads: [
        readOf('token', token.hash, null),
        readOf('profile', token.profile, profile),
        readOf('domain', 'domain', domain),
        ...(nodeId === null ? [] : former === null ? [readOf('node', nodeId, node)] : readsOfAbsent(nodeId, former)),
      ],
      writes: [
        { put: 'token', value: token },
        ...(newcomer === null ? [] : [{ put: 'node' as const, value: newcomer }]),
      ],
      entries: newcomer === null ? [created] : [registeredEntry(newcomer, by, nowMs), created],
    }),
    token,
    registered: newcomer !== null,
  }
}

const ttlProblem = (ttlMs: number): Refusal | null =>
  Number.isSafeInteger(ttlMs) && ttlMs > 0 && ttlMs <= longestTokenTtlMs
    ? null
    : refuseField('SETTING_INVALID', 'expires_ms', 'the lifetime of a token is more than 0 and at most 24 hours')

const profileForbids = ({ nodeId, profile, domain, replace }: CreateTokenFacts): Refusal | null => {
  const { name, join } = profile.value
  if (!join.allOf.includes('token')) {
    return refuseMethod(name, `asks for ${join.allOf.join(' and ')}`)
  }
  const unavailable = unavailableMethods(profile.value)
  if (unavailable.length > 0)
    return refuseMethod(
      name,
      `asks for ${join.allOf.join(' and ')}, and no agent can join by ${unavailable.join()} yet`,
    )
  if (nodeId !== null) {
    // Said now to the operator instead of later to the machine.
    const subject = subjectOf(nodeId, profile.value, domain.value)
    return subject.kind === 'refused' ? subject : null
  }
  if (join.tokenScope !== 'domain') {
    return refuseMethod(name, 'asks for a token made for the node: muster token create --node ID')
  }
  return replace
    ? refuseField('REQUEST_INVALID', 'replace', 'only a token for a node can replace one: name it with --node')
    : null
}

const nodeForbids = (node: Node, { profile, replace }: CreateTokenFacts): Refusal | null => {
  if (node.membership.kind === 'revoked') return refuse('NODE_REVOKED')
  if (node.membership.kind === 'quarantined') return refuse('NODE_QUARANTINED')
  if (node.profile !== profile.value.name) {
    return refuse(
      'NODE_STATE_CONFLICT',
      `${node.id} is registered under profile ${node.profile}; a token does not change that`,
    )
  }
  switch (node.membership.kind) {
    case 'registered':
      return null
    case 'enrolled':
    case 'inactive':
      return approvalComplete(node, profile.value)
        ? null
        : refuse('APPROVAL_REQUIRED', `muster node approve ${node.id}`)
    case 'active':
      return replace ? null : refuse('ALREADY_ACTIVE', `muster token create --node ${node.id} --replace`)
  }
}

export type RevokeTokenFacts = { readonly token: Row<Token>; readonly by: Attribution; readonly nowMs: number }

export const decideRevokeToken = ({
  token,
  by,
  nowMs,
}: RevokeTokenFacts): (Decided & { readonly token: Token }) | Refusal => {
  const { id, hash, scope, state } = token.value
  if (state.kind === 'used') return refuse('TOKEN_USED', `${state.node} enrolled with it at ${isoTime(state.atMs)}`)
  if (state.kind === 'revoked') return refuse('TOKEN_INVALID', `${state.by} withdrew it at ${isoTime(state.atMs)}`)
  const revoked: Token = { ...token.value, state: { kind: 'revoked', by: by.actor, atMs: nowMs } }
  const node = scope.kind === 'node' ? scope.node : null
  return {
    ...decided({
      reads: [readOf('token', hash, token)],
      writes: [{ put: 'token', value: revoked }],
      entries: [entry(by, nowMs, 'enrollment_token.revoked', { node, token: id }, { token_id: id, was: state.kind })],
    }),
    token: revoked,
  }
}
