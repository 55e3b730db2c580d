// Tokens are made and taken back. A secret is shown once; only its hash is kept.

import type { Row, Attribution } from '#domain/core/change.ts'
import type { Node, NodeId } from '#domain/core/node.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Token } from '#domain/enrollment/token.ts'
import { decideCreateToken, decideRevokeToken } from '#domain/enrollment/tokens.ts'
import type { Issuer } from '#plane/core/issuer.ts'
import { sha256Hex } from '#platform/bytes.ts'
import { sortableId } from '#platform/random.ts'
import { formatJoinString } from '#wire/core/join-string.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import type { Core, FlowCore } from '#plane/core/core.ts'

export type CreateTokenDeps = FlowCore &
  Pick<Core, 'random'> & {
    readonly issuer: Pick<Issuer, 'rootFingerprint'>
    /** Where machines find the node plane. */
    readonly nodeUrl: () => string
  }

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
  deps: CreateTokenDeps,
  asked: TokenAsked,
  by: Attribution,
): Promise<TokenMade | Refusal> => {
  const secret = `enroll_${deps.random.bytes(32).toString('base64url')}`
  const tokenId = sortableId(deps.clock.nowMs(), deps.random)
  const done = await commitDecision(deps, async () => {
    const domain = await domainSettingsRow(deps.store)
    const node = asked.node === null ? null : await deps.store.get('node', asked.node)
    const name = asked.profile ?? profileOf(node) ?? domain.value.defaultProfile
    const profile = await deps.store.get('profile', name)
    if (profile === null) return refuse('PROFILE_NOT_FOUND', name)
    const decided = decideCreateToken({
      tokenId,
      secretHash: sha256Hex(secret),
      nodeId: asked.node,
      node,
      profile,
      replace: asked.replace,
      ttlMs: asked.ttlMs,
      domain,
      by,
      nowMs: deps.clock.nowMs(),
    })
    return decided.kind === 'refused' ? decided : { ...decided, domainName: domain.value.name }
  })
  if (done.kind === 'refused') return done
  const rootFingerprint = deps.issuer.rootFingerprint()
  const join = formatJoinString({ url: deps.nodeUrl(), domain: done.domainName, rootFingerprint, secret })
  return { kind: 'made', token: done.token, registered: done.registered, secret, join }
}

const profileOf = (node: Row<Node> | null): string | null => (node === null ? null : node.value.profile)

export const revokeToken = async (
  deps: FlowCore,
  id: string,
  by: Attribution,
): Promise<{ readonly kind: 'revoked'; readonly token: Token } | Refusal> => {
  const done = await commitDecision(deps, async () => {
    const token = await deps.store.tokenById(id)
    return token === null ? refuse('TOKEN_NOT_FOUND') : decideRevokeToken({ token, by, nowMs: deps.clock.nowMs() })
  })
  return done.kind === 'refused' ? done : { kind: 'revoked', token: done.token }
}
