// One line of a batch: a node is registered and gets its token, in one change. A later attempt withdraws the token whose answer was
// lost: an earlier one committed it, and its secret is lost. An earlier attempt that arrives late is refused: the caller may hold
// the token of the later one.

import { decided, type Attribution, type Change, type Decided, type Read, type Row } from '#domain/core/change.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import { isBlank } from '#domain/core/hardware-identity.ts'
import type { HardwareProfile } from '#domain/core/hardware-profile.ts'
import type { HardwareIdentity, Node, NodeId } from '#domain/core/node.ts'
import type { Profile } from '#domain/core/profile.ts'
import type { FormerNode } from '#domain/core/purged-node.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Token } from '#domain/core/token.ts'
import { decideTag } from '#domain/fleet/hardware-rules.ts'
import { decideRegister, differencesFrom } from './registration.ts'
import { decideCreateToken, decideRevokeToken } from './token.ts'

export type BatchLineFacts = {
  readonly id: NodeId
  /** That of the line; for a line without one, the node's own or the domain's default. */
  readonly profile: Row<Profile>
  readonly hardware: HardwareIdentity
  /** Added to those that the node has. */
  readonly tags: readonly string[]
  /** Of every tag the node is about to carry. */
  readonly hardwareProfiles: readonly { readonly tag: string; readonly row: Row<HardwareProfile> | null }[]
  readonly existing: Row<Node> | null
  /** Counts where there is none. */
  readonly former: FormerNode
  /** Every node that holds any of this hardware. */
  readonly owners: readonly Row<Node>[]
  /** Tokens for this node. */
  readonly tokens: readonly Row<Token>[]
  readonly batch: string
  /** Of the call; each attempt at a batch has a higher one than those before it. */
  readonly attempt: number
  readonly tokenId: string
  readonly secretHash: string
  readonly serverName: string | null
  /** Null: as long as the profile says. */
  readonly ttlMs: number | null
  readonly domain: Row<DomainSettings>
  readonly by: Attribution
  readonly nowMs: number
}

export type BatchLineDecided = Decided & {
  readonly token: Token
  readonly registered: boolean
  /** How many tokens of this batch were withdrawn. */
  readonly withdrawn: number
}

export const decideBatchLine = (facts: BatchLineFacts): BatchLineDecided | Refusal => {
  const { existing, batch, attempt, by, nowMs } = facts
  const earlier = facts.tokens.filter(({ value }) => value.batch === batch)
  const newest = Math.max(0, ...earlier.map(({ value }) => value.attempt ?? 0))
  if (attempt <= newest) return refuse('ATTEMPT_OUTDATED', `attempt ${newest} made one, and this is attempt ${attempt}`)
  const registration = existing === null || isRevoked(existing.value) ? decideRegister(facts) : keep(existing, facts)
  if (registration.kind === 'refused') return registration
  const version = existing?.version ?? 0
  const tagging = tag({ value: registration.node, version }, facts)
  if (tagging.kind === 'refused') return tagging
  const node = { value: tagging.node, version }
  const creation = decideCreateToken({ ...facts, nodeId: facts.id, node, former: null, replace: false })
  if (creation.kind === 'refused') return creation

  const lost = earlier.filter(({ value }) => value.state.kind === 'unused')
  const withdrawals = lost.map((token) => decideRevokeToken({ token, by, nowMs })).filter(isDecided)
  const token: Token = { ...creation.token, batch, attempt }
  const parts = [registration.change, tagging.change, ...withdrawals.map(({ change }) => change), creation.change]
  const entries = parts.flatMap((part) => part?.entries ?? [])
  return {
    ...decided({
      reads: onceEach(parts.flatMap((part) => part?.reads ?? [])),
      writes: [
        // Also where it stays as it was: two attempts at the same time meet at this row, and the loser sees the token of the other.
        { put: 'node', value: node.value },
        ...withdrawals.map((withdrawal) => ({ put: 'token' as const, value: withdrawal.token })),
        { put: 'token', value: token },
      ],
      entries: entries as unknown as Change['entries'],
    }),
    token,
    registered: registration.change !== null,
    withdrawn: withdrawals.length,
  }
}

type Step = { readonly kind: 'step'; readonly node: Node; readonly change: null }
const unchanged = (node: Node): Step => ({ kind: 'step', node, change: null })

const isRevoked = ({ membership }: Node): boolean => membership.kind === 'revoked'

/** A line says nothing about what it leaves out, so only what it names is compared. */
const keep = ({ value: node }: Row<Node>, { profile, hardware }: BatchLineFacts): Step | Refusal => {
  const named = isBlank(hardware) ? node.hardware : hardware
  const differences = differencesFrom(node, profile.value, named)
  return differences.length === 0
    ? unchanged(node)
    : refuse('NODE_ALREADY_ENROLLED', `${node.id} is registered ${differences.join(' and ')}`)
}

const tag = (node: Row<Node>, { tags, hardwareProfiles, by, nowMs }: BatchLineFacts) =>
  tags.every((one) => node.value.machine.tags.includes(one))
    ? unchanged(node.value)
    : decideTag({ node, add: tags, remove: [], profiles: hardwareProfiles, by, nowMs })

const isDecided = <D extends Decided>(verdict: D | Refusal): verdict is D => verdict.kind === 'decided'

/** Of several reads of one row the first, which also knows of a removal before it. */
const onceEach = (reads: readonly Read[]): Read[] => {
  const named = new Map<string, Read>()
  for (const read of reads) {
    const name = `${read.row} ${read.key}`
    if (!named.has(name)) named.set(name, read)
  }
  return [...named.values()]
}
