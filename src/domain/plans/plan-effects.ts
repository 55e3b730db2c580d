// What an action would do, a line for each it concerns. Facts are those the line follows from and no others: a renewal or a
// report in between must not make a plan stale.

import { boundedText, type Row } from '#domain/core/change.ts'
import { counted, durationWords } from '#domain/core/in-words.ts'
import { effectOfWithdrawal, type IssuerRow } from '#domain/ca/issuer.ts'
import type { Node } from '#domain/core/node.ts'
import type { PlanEffect } from './plan.ts'
import type { Profile } from '#domain/core/profile.ts'
import { recoverabilityOf } from '#domain/core/recoverability.ts'
import { changesOf } from '#domain/core/settings-check.ts'
import { type Token, tokenStatus } from '#domain/core/token.ts'
import type { VCluster } from '#domain/fleet/vcluster.ts'
import type { NameNeeds, NodeAtName, WhyNeeded } from '#domain/settings/name-needs.ts'

const works = (count: number): string => counted(count, 'allocation')

export const subjectOf = ({ id }: Node): string => `node ${id}`

export const factsOf = ({ membership, epoch, assignment, allocations, drain }: Node): readonly string[] => [
  membership.kind,
  `epoch ${epoch}`,
  assignment === null ? 'in no vCluster' : `in ${assignment}`,
  ...(drain === 'none' ? [] : [drain]),
  ...(allocations === 0 ? [] : [works(allocations)]),
]

export const revocationOf = (node: Node): PlanEffect => {
  const facts = factsOf(node)
  const subject = subjectOf(node)
  if (node.membership.kind === 'revoked') {
    return { subject, effect: 'nothing: it is revoked already', loses: null, unrecoverable: null, facts }
  }
  const { allocations, wireguard } = node
  const effect = [
    'revoked for good',
    ...(allocations === 0 ? [] : [`${works(allocations)} released`]),
    ...(wireguard === null ? [] : ['its WireGuard key withdrawn from its peers']),
  ].join('; ')
  const unrecoverable = `it comes back only registered anew: muster node enroll ${node.id}`
  return { subject, effect, loses: 'at once', unrecoverable, facts }
}

/** A node that the ban of another's keys reaches: a copied image. */
export const cutWithKeyOf = (node: Node, banned: Node): PlanEffect => ({
  subject: subjectOf(node),
  effect: `loses its certificate: it has the same key as ${banned.id}, which is banned`,
  loses: 'at once',
  unrecoverable: `without a recovery key of its own it needs a token: muster token create --node ${node.id} --replace`,
  facts: [node.membership.kind, `epoch ${node.epoch}`, `a key of ${banned.id}`],
})

/** Drained nodes go; others only by force. */
export const decommissioningOf = (node: Node, force: boolean): PlanEffect => {
  const line = revocationOf(node)
  if (node.membership.kind === 'revoked' || force || node.drain === 'drained') return line
  return {
    ...line,
    effect: 'decommissioned unless a channel is open or work runs there: drain it first, or use --force',
    unrecoverable: null,
  }
}

/** `barred`: why it cannot be purged now. `words`: what goes and what stays. `version`: of its row. */
export const purgeOf = (
  node: Node,
  { barred, words, version }: { readonly barred: string | null; readonly words: string; readonly version: number },
): PlanEffect => ({
  subject: subjectOf(node),
  effect: barred === null ? words : `nothing: ${barred}`,
  loses: null,
  unrecoverable: barred === null ? 'the record itself: only the journal tells of it from then on' : null,
  facts: [node.membership.kind, `epoch ${node.epoch}`, versionFact(version)],
})

export const tokenRevocationOf = (
  token: Token,
  others: readonly Token[],
  node: Node | null,
  nowMs: number,
): readonly PlanEffect[] => {
  const state = tokenStatus(token, nowMs)
  const whose = token.scope.kind === 'node' ? `for ${token.scope.node}` : 'of the domain'
  const good = state === 'unused' || state === 'bound'
  const own: PlanEffect = {
    subject: `token ${token.id}`,
    effect: good ? 'no machine can enroll with it any more' : `nothing: it is ${state} already`,
    loses: null,
    unrecoverable: null,
    facts: [state, whose],
  }
  if (!good || node === null) return [own]
  const left = others.filter((one) => one.id !== token.id && tokenStatus(one, nowMs) === 'unused').length
  const waits = node.membership.kind === 'registered'
  return [
    own,
    {
      subject: subjectOf(node),
      effect: waits ? 'cannot join with it' : 'keeps its certificate',
      loses: null,
      unrecoverable: waits && left === 0 ? `it has no other way in: muster token create --node ${node.id}` : null,
      facts: [node.membership.kind, counted(left, 'other unused token')],
    },
  ]
}

export const vclusterDeletionOf = (vcluster: VCluster, nodes: readonly Node[]): readonly PlanEffect[] => [
  {
    subject: `vcluster ${vcluster.name}`,
    effect: nodes.length === 0 ? 'deleted' : `deleted; into maintenance mode: ${counted(nodes.length, 'node')}`,
    loses: null,
    unrecoverable: null,
    facts: [`revision ${vcluster.revision}`],
  },
  ...nodes.map(unassignmentOf),
]

/** Of one of its nodes. */
export const unassignmentOf = (node: Node): PlanEffect => ({
  subject: subjectOf(node),
  effect: [
    'in no vCluster, not schedulable; its services stop',
    ...(node.allocations === 0 ? [] : [`${works(node.allocations)} released`]),
  ].join('; '),
  loses: null,
  unrecoverable: null,
  facts: [`in ${node.assignment ?? 'no vCluster'}`, ...(node.allocations === 0 ? [] : [works(node.allocations)])],
})

export type ProfileChangeFacts = {
  readonly before: Profile
  readonly after: Profile
  /** The settings that were named. */
  readonly keys: readonly string[]
  /** Of the profile's row. */
  readonly version: number
  readonly nodes: readonly { readonly node: Node; readonly rehearsedAtMs: number | null }[]
  readonly nowMs: number
}

/** Which version of a row was looked at. */
export const versionFact = (version: number): string => `version ${version}`

/** A line for the profile, and one for every node that would lose its recovery without an operator. */
export const profileChangeOf = (facts: ProfileChangeFacts): readonly PlanEffect[] => {
  const { before, after, keys, version, nodes, nowMs } = facts
  const shorter = after.certificate.lifetimeMs < before.certificate.lifetimeMs
  const living = nodes.filter(({ node }) => node.membership.kind !== 'revoked')
  return [
    {
      subject: `profile ${before.name}`,
      effect: [
        ...changesOf(before, after, keys),
        `taken up at the next renewal by ${counted(living.length, 'node')}`,
        ...(shorter ? [`certificates then end after ${durationWords(after.certificate.lifetimeMs)}`] : []),
      ].join('; '),
      loses: null,
      unrecoverable: null,
      facts: [versionFact(version)],
    },
    ...living.flatMap(({ node, rehearsedAtMs }): PlanEffect[] => {
      const was = recoverabilityOf(node, before, rehearsedAtMs, nowMs)
      const will = recoverabilityOf(node, after, rehearsedAtMs, nowMs)
      if (!was.recoverable || will.recoverable) return []
      const unrecoverable = `it would no longer recover without an operator: ${will.why}`
      return [{ subject: subjectOf(node), effect: 'not recoverable', loses: null, unrecoverable, facts: factsOf(node) }]
    }),
  ]
}

/**
 * What a document makes of one thing that it declares. `version` of its row; null: there never was one. `copied`: what it has its other
 * settings from.
 */
export const declaredOf = (
  subject: string,
  {
    effect,
    version,
    copied,
  }: { readonly effect: string; readonly version: number | null; readonly copied?: Row<{ readonly name: string }> },
): PlanEffect => ({
  ...{ subject, effect: boundedText(effect, 1000), loses: null, unrecoverable: null },
  facts: [
    version === null ? 'not there' : versionFact(version),
    ...(copied === undefined ? [] : [`${copied.value.name} at ${versionFact(copied.version)}`]),
  ],
})

export const rotationOf = (signing: readonly IssuerRow[]): readonly PlanEffect[] =>
  signing.map(({ id, role }) => ({
    subject: `authority ${id}`,
    effect: 'signs nothing more; what it has signed stays good until it ends',
    loses: null,
    unrecoverable: null,
    facts: [role, 'signing'],
  }))

export type WithdrawnAuthorityFacts = {
  readonly issuers: readonly IssuerRow[]
  readonly nodes: readonly { readonly node: Node; readonly profile: Profile; readonly rehearsedAtMs: number | null }[]
  readonly nowMs: number
}

export const authorityWithdrawalOf = ({ issuers, nodes, nowMs }: WithdrawnAuthorityFacts): readonly PlanEffect[] => {
  const ids = issuers.map(({ id }) => id)
  return [
    ...issuers.map(({ id, role }): PlanEffect => ({
      subject: `authority ${id}`,
      effect: 'withdrawn: nothing it has signed is taken any more, and its key is destroyed',
      loses: 'at once',
      unrecoverable: 'for good',
      facts: [role],
    })),
    ...nodes.flatMap(({ node, profile, rehearsedAtMs }): PlanEffect[] => {
      const effect = effectOfWithdrawal(node, profile, ids, rehearsedAtMs, nowMs)
      if (effect === null) return []
      const { comesBack, why } = effect
      const byItself = comesBack === 'by itself' || comesBack === 'joins'
      return [
        {
          subject: subjectOf(node),
          effect: byItself
            ? 'loses its certificate and recovers automatically'
            : `loses its certificate (${comesBack})`,
          loses: 'at once',
          unrecoverable: byItself ? null : `an operator may have to help: ${why}`,
          facts: [node.membership.kind, `epoch ${node.epoch}`],
        },
      ]
    }),
  ]
}

/** A line for the name, and one for every node that would call the plane by a name that it does not have. */
export const nameDropOf = (host: string, { nodes, tokens, bundles, joinStrings }: NameNeeds): readonly PlanEffect[] => [
  {
    subject: `name ${host}`,
    effect: 'leaves the certificates of the plane; stays forbidden for programs',
    loses: null,
    unrecoverable: null,
    facts: [
      counted(nodes.length, 'node'),
      `${counted(tokens.length, 'unused token')} void`,
      `${counted(bundles.length, 'repair bundle')} void`,
      `${counted(joinStrings, 'join string')} without a token void`,
    ],
  },
  ...nodes.map(({ facts, why }) => strandedOf(facts, why)),
]

const strandedOf = ({ node, recoverable, agentVersion }: NodeAtName, why: WhyNeeded): PlanEffect => {
  const subject = subjectOf(node)
  const facts = [
    node.membership.kind,
    why === 'image' ? 'joins by its hardware' : 'has not acknowledged the new address',
  ]
  if (why === 'image') {
    const unrecoverable = 'at its next start, if its image has a join string with that name: muster domain join-string'
    return { subject, effect: 'stays connected', loses: null, unrecoverable, facts }
  }
  const comesBack = recoverable && knowsTheMark(agentVersion)
  return {
    subject,
    effect: comesBack ? 'meets another name, and recovers automatically' : 'meets another name',
    loses: 'at once',
    unrecoverable: comesBack ? null : `it may need a token: muster token create --node ${node.id} --replace`,
    facts,
  }
}

/** An agent before 0.4.0 does not recover from a plane with another name. */
const knowsTheMark = (version: string | null): boolean => {
  const [major = 0, minor = 0] =
    /^(\d+)\.(\d+)\./
      .exec(version ?? '')
      ?.slice(1)
      .map(Number) ?? []
  return major > 0 || minor >= 4
}
