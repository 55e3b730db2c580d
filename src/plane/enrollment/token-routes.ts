// Enrollment tokens. Making one needs an authenticated operator.

import { tokenView, tokenApi } from '#wire/enrollment/token-api.ts'
import { attributionOf, answer, type CallOf, type Route, serve } from '#plane/http/route.ts'
import type { FlowCore } from '#plane/core/core.ts'
import type { Row, Attribution } from '#domain/core/change.ts'
import type { Node, NodeId } from '#domain/core/node.ts'
import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Token } from '#domain/core/token.ts'
import { decideCreateToken, decideRevokeToken } from '#domain/enrollment/token.ts'
import { joinStringOf, mintToken, type JoinTarget } from './mint-token.ts'
import { createTokenBatch } from './token-batch.ts'
import { formerNode } from '#plane/core/former-node.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { liveProfile } from '#plane/core/live-profile.ts'

const mostListed = 1000

export const operatorTokenRoutes = (core: FlowCore, target: JoinTarget): readonly Route[] =>
  serve(tokenApi, {
    create: (call) => make(core, target, call),
    createBatch: (call) => createTokenBatch(core, target, call),
    list: async (call) => {
      const { node = null, after = null, limit = mostListed } = call.query
      const tokens = await core.store.tokens({ node, after, limit })
      if (node !== null && tokens.length === 0 && (await core.store.get('node', node)) === null)
        return refuse('NODE_NOT_FOUND', node)
      const last = tokens.length < limit ? undefined : tokens.at(-1)
      const views = tokens.map(({ value }) => tokenView(value, core.clock.nowMs()))
      return answer({ tokens: views, next: last?.value.id ?? null })
    },
    revoke: async (call) => {
      const done = await revokeToken(core, call.params.id, attributionOf(call))
      return done.kind === 'refused' ? done : answer(tokenView(done.token, core.clock.nowMs()))
    },
  })

const make = async (core: FlowCore, target: JoinTarget, call: CallOf<typeof tokenApi.create>) => {
  const { node = null, profile = null, replace = false, expires_ms: ttlMs = null } = call.body
  const made = await createToken(core, target, { node, profile, replace, ttlMs }, attributionOf(call))
  if (made.kind === 'refused') return made
  const { secret, join, registered } = made
  return answer({ token: tokenView(made.token, core.clock.nowMs()), secret, join, registered }, 201)
}

// Tokens are made and taken back. A secret is shown once; only its hash is kept.

export type TokenAsked = {
  /** Null: a token of the domain. */
  readonly node: NodeId | null
  /** Null: the node's own, else the domain's default. */
  readonly profile: string | null
  readonly replace: boolean
  readonly ttlMs: number | null
}

export type TokenMade = {
  readonly kind: 'made'
  readonly token: Token
  readonly registered: boolean
  /** Shown once; only its hash is kept. */
  readonly secret: string
  readonly join: string
}

export const createToken = async (
  core: FlowCore,
  target: JoinTarget,
  asked: TokenAsked,
  by: Attribution,
): Promise<TokenMade | Refusal> => {
  const { secret, ...minted } = mintToken(core, target)
  const done = await commitDecision(core, async () => {
    const domain = await domainSettingsRow(core.store)
    const node = asked.node === null ? null : await core.store.get('node', asked.node)
    const name = asked.profile ?? profileOf(node) ?? domain.value.defaultProfile
    const profile = await liveProfile(core.store, name)
    if (isRefusal(profile)) return profile
    const decided = decideCreateToken({
      ...minted,
      nodeId: asked.node,
      node,
      former: asked.node === null || node !== null ? null : await formerNode(core.store, asked.node),
      profile,
      replace: asked.replace,
      ttlMs: asked.ttlMs,
      domain,
      by,
      nowMs: core.clock.nowMs(),
    })
    return decided.kind === 'refused' ? decided : { ...decided, domainName: domain.value.name }
  })
  if (done.kind === 'refused') return done
  const join = joinStringOf(target, done.domainName, secret)
  return { kind: 'made', token: done.token, registered: done.registered, secret, join }
}

const profileOf = (node: Row<Node> | null): string | null => (node === null ? null : node.value.profile)

export const revokeToken = async (
  core: FlowCore,
  id: string,
  by: Attribution,
): Promise<{ readonly kind: 'revoked'; readonly token: Token } | Refusal> => {
  const done = await commitDecision(core, async () => {
    const token = await core.store.tokenById(id)
    return token === null ? refuse('TOKEN_NOT_FOUND') : decideRevokeToken({ token, by, nowMs: core.clock.nowMs() })
  })
  return done.kind === 'refused' ? done : { kind: 'revoked', token: done.token }
}
