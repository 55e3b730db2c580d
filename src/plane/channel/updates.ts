// Keeps agents up to date with the configuration and the roots they run under. One session at a time is looked at and
// sent what it lacks, so that two changes in a row arrive in that order; ten thousand of them let other work in between.

import type { Row } from '#domain/core/change.ts'
import type { Node, NodeId } from '#domain/core/node.ts'
import type { VCluster } from '#domain/fleet/vcluster.ts'
import { turn } from '#platform/timers.ts'
import type { Issuer } from '#plane/core/issuer.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { configurationOf, trustOf, type PlaneUrls } from '#plane/core/configuration.ts'
import { configOutputs } from '#plane/core/config-outputs.ts'
import type { Gate } from '#plane/cluster/gate.ts'
import type { SessionRegistry } from '#plane/sessions/session-registry.ts'
import type { Revisions, Session } from '#plane/sessions/session.ts'
import { wireguardConfigOf } from '#plane/network/wireguard-part.ts'
import type { Core } from '#plane/core/core.ts'

type UpdateCore = Pick<Core, 'store' | 'timers' | 'log'>

export type UpdateParts = {
  readonly issuer: Pick<Issuer, 'roots' | 'withdrawnIssuers' | 'issuerRoots'>
  readonly sessions: Pick<SessionRegistry, 'all' | 'of'>
  readonly gate: Pick<Gate, 'serves' | 'opened'>
  readonly urls: () => PlaneUrls
}

export type Updates = {
  /** The agent has said what it has. */
  greeted(session: Session, has: Revisions): void
  /** The agent knows roots of issuers, and has said which it has. */
  hasIssuerRoots(session: Session, revision: number): void
  /** A commit that may concern all sessions. */
  changed(): void
  /** Something was committed that concerns this node. */
  changedFor(node: NodeId): void
  /** A vCluster was changed: concerns the nodes in it. */
  changedIn(vcluster: string): void
}

const sessionsPerTurn = 32

export const openUpdates = (core: UpdateCore, parts: UpdateParts): Updates => {
  const { sessions, gate } = parts
  const outdated = new Set<Session>()
  /** The vCluster of each session's node at the last look; a node that moved since is looked at again. */
  const within = new WeakMap<Session, string | null>()
  let busy = false

  const work = async (): Promise<void> => {
    busy = true
    let looked = 0
    for (const session of outdated) {
      await gate.opened()
      // Taken out first: what changes while it is looked at puts it in again, at the end.
      outdated.delete(session)
      await bringUpToDate(core.store, parts, session, within).catch((error: unknown) =>
        core.log.error({ err: error, node: session.principal.id }, 'a configuration could not be sent'),
      )
      if (++looked % sessionsPerTurn === 0) await turn(core.timers)
    }
    busy = false
  }
  const start = (): void => {
    if (!busy) void work()
  }
  const look = (some: Iterable<Session>, concerns: (session: Session) => boolean = () => true): void => {
    for (const session of some) if (session.revisions !== null && concerns(session)) outdated.add(session)
    start()
  }

  return {
    greeted(session, has) {
      session.revisions = has
      outdated.add(session)
      start()
    },
    hasIssuerRoots(session, revision) {
      // What it says later confirms what it was sent, which may not be the newest.
      if (session.issuerRoots !== null) return
      session.issuerRoots = revision
      look([session])
    },
    changed: () => look(sessions.all()),
    changedFor: (node) => look(sessions.of(node)),
    changedIn: (vcluster) => look(sessions.all(), (session) => within.get(session) === vcluster),
  }
}

type Within = { set(session: Session, vcluster: string | null): unknown }

const bringUpToDate = async (store: Store, parts: UpdateParts, session: Session, within: Within): Promise<void> => {
  const { issuer, gate, urls } = parts
  const has = session.principal.evidenceOnly ? null : session.revisions
  const node = await store.get('node', session.principal.id)
  if (has === null || node === null) return
  // Before the vCluster is read: a change of it from here on finds the session, and has it looked at again.
  within.set(session, node.value.assignment)
  const profile = await store.get('profile', node.value.profile)
  const vcluster = await vclusterOf(store, node)
  const domain = await domainSettingsRow(store)
  if (profile === null) return
  const config = configurationOf({
    ...{ node: node.value, offers: session.offers, profile: profile.value, domain: domain.value },
    ...{ vcluster, urls: urls() },
    wireguard: wireguardConfigOf(node.value, profile.value, domain.value),
    outputs: session.takesOutputs ? await configOutputs(store, node.value, profile.value, vcluster) : null,
  })
  const trust = trustOf(issuer)
  // Out of touch by now: what was read may be old.
  if (!gate.serves()) return gate.opened().then(() => bringUpToDate(store, parts, session, within))
  if (trust.revision !== has.trust) session.send({ type: 'trust', body: trust })
  if (config.revision !== has.config) session.send({ type: 'config', body: config })
  session.revisions = { config: config.revision, trust: trust.revision }
  const roots = issuer.issuerRoots()
  if (session.issuerRoots === null || session.issuerRoots === roots.revision) return
  session.send({ type: 'issuer_roots', body: roots })
  session.issuerRoots = roots.revision
}

const vclusterOf = async (store: Store, { value }: Row<Node>): Promise<VCluster | null> => {
  if (value.assignment === null) return null
  const row = await store.get('vcluster', value.assignment)
  // None is deleted that has nodes; the node was moved while this was read, and is looked at again.
  return row === null || row.value.deletedAtMs !== null ? null : row.value
}
