// Cut-offs that the store cannot commit now. Each is in force at this replica from the moment it was ordered: what it denies
// is denied, channels are cut, and no certificate is issued to what it names. It is repeated until it is committed, also
// after a restart. No receipt is given before that, since other replicas know nothing of it.

import { wantedAlert } from '#domain/alerts/alert-kinds.ts'
import { denialKey, type Denial } from '#domain/core/certificate.ts'
import {
  aboutOrder,
  cutOffKey,
  cutOffWords,
  isOverruled,
  isSameOrder,
  reasonCodeOf,
  type CutOffOrder,
} from '#domain/core/cut-off.ts'
import { denialOfIssuer, withdrawnWith } from '#domain/ca/issuer.ts'
import type { NodeId } from '#domain/core/node.ts'
import { isRefusal, refuse, type InForceHere, type Refusal } from '#domain/core/refusal.ts'
import { StoreFault } from '#plane/store/contract/store-errors.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { sleep } from '#platform/timers.ts'
import type { CutOffFiles } from './cut-off-files.ts'
import { raiseAlert } from '#plane/alerts/reconcile-alerts.ts'
import type { Core, FlowCore } from '#plane/core/core.ts'

export type PendingCutOff = {
  readonly order: CutOffOrder
  /** What is denied here meanwhile. */
  readonly denials: readonly Denial[]
  /** In force here since then. */
  readonly sinceMs: number
  /** When it was ordered last: what operators did before that does not undo it. */
  readonly orderedMs: number
}

export type PendingCutOffs = {
  /**
   * Carries out an order. Where the store fails it is in force here and pending, and the refusal says so; repeated, the
   * answer is the same until it is committed.
   */
  run<T extends object>(order: CutOffOrder, attempt: (store: Store) => Promise<T | Refusal>): Promise<T | Refusal>
  /** Denies again what was pending when the last process ended. Before the first caller is served. */
  enforce(): void
  /** One more try of everything that is pending. */
  repeat(perform: (order: CutOffOrder) => Promise<object>): Promise<void>
  warnings(): readonly string[]
}

export type CutOffParts = {
  readonly files: CutOffFiles
  readonly denyList: { reload(denial: Denial): Promise<void> }
  /** The epochs of this node that have a channel here. */
  readonly epochsHere: (node: NodeId) => readonly number[]
}

/** The most orders that are kept; a further one is refused. */
const mostPending = 1000
const retryAfterMs = 2000
/** How long a denial lasts if the end of what it denies could not be read. The commit replaces it with the right time. */
const denyAtLeastMs = 30 * 24 * 3600 * 1000
const denyEarlyMs = 1500
const lookAtReplicasMs = 10_000
/** Entries about one order that are read, the newest: enough to see how the last of its kind ended. */
const entriesRead = 50

const subjectOf = (order: CutOffOrder): string => {
  switch (order.kind) {
    case 'quarantine':
    case 'revoke':
      return order.node
    case 'revoke-worker':
      return order.worker
    case 'withdraw':
      return order.issuer
    case 'halt':
      return 'issuance'
  }
}

export const openPendingCutOffs = (
  core: FlowCore & Pick<Core, 'timers' | 'log'>,
  { files, denyList, epochsHere }: CutOffParts,
  pending: Map<string, PendingCutOff>,
): PendingCutOffs => {
  const { store, feed, clock, timers, log } = core
  const keptIn = new Map<string, InForceHere['kept']>([...pending.keys()].map((key) => [key, 'data folder']))
  /** What each order that is being carried out has denied before its commit was answered. */
  const underWay = new Set<readonly Denial[]>()
  let others: readonly string[] = []
  let lookedMs = -Infinity

  const deny = (denials: readonly Denial[]): void =>
    feed.publish({
      kind: 'committed',
      origin: 'here',
      writes: denials.map((value) => ({ put: 'denial', value }) as const),
      entries: [],
    })

  /** Where even the decision failed: what can be denied without reading anything. */
  const denialsOf = async (order: CutOffOrder): Promise<readonly Denial[]> => {
    const nowMs = clock.nowMs()
    const denied = { atMs: nowMs, untilMs: nowMs + denyAtLeastMs, why: order.reason, reason: 'unspecified' } as const
    switch (order.kind) {
      case 'quarantine':
      case 'revoke': {
        const { node } = order
        const reason = reasonCodeOf(order)
        return epochsHere(node).map((epoch) => ({ ...denied, kind: 'epoch', node, epoch, reason }))
      }
      // Its certificates are refused by the order itself (workerBarredByPending).
      case 'revoke-worker':
      case 'halt':
        return []
      case 'withdraw': {
        const issuers = await store.issuers().catch(() => [])
        const rows = withdrawnWith(
          order.issuer,
          issuers.map(({ value }) => value),
        )
        if (rows.length > 0) return rows.map((row) => denialOfIssuer(row, 0, order.reason, nowMs))
        return [{ kind: 'issuer', issuer: order.issuer, ...denied, reason: 'ca-compromise' }]
      }
    }
  }

  const keep = async (order: CutOffOrder, decided: readonly Denial[]): Promise<Refusal> => {
    const key = cutOffKey(order)
    const known = pending.get(key)
    if (known === undefined || !isSameOrder(known.order, order)) {
      const ordered = decided.length > 0 ? decided : await denialsOf(order)
      const nowMs = clock.nowMs()
      // Another call may have kept one while this one waited.
      const before = pending.get(key)
      if (before === undefined && pending.size >= mostPending)
        return { ...refuse('UNAVAILABLE', `${mostPending} cut-offs are pending already`), retryAfterMs }
      const denials = [
        ...new Map([...(before?.denials ?? []), ...ordered].map((one) => [denialKey(one), one])).values(),
      ]
      const one: PendingCutOff = { order, denials, sinceMs: before?.sinceMs ?? nowMs, orderedMs: nowMs }
      pending.set(key, one)
      deny(denials)
      const kept = files.keep(key, one)
      keptIn.set(key, kept)
      log.error({ cutOff: key, kept }, `${cutOffWords(order)} is in force here and cannot be committed: it is repeated`)
    } else {
      const one = { ...known, orderedMs: clock.nowMs() }
      pending.set(key, one)
      if (files.keep(key, one) === 'data folder') keptIn.set(key, 'data folder')
    }
    await knowReplicas()
    const inForceHere: InForceHere = { unaware: others, kept: keptIn.get(key) ?? 'memory' }
    return { ...refuse('CUT_OFF_PENDING', cutOffWords(order)), retryAfterMs, inForceHere }
  }

  const over = (order: CutOffOrder): void => {
    const key = cutOffKey(order)
    pending.delete(key)
    keptIn.delete(key)
    files.drop(key)
  }

  const alertOnce = async ({ order, sinceMs }: PendingCutOff, ending: string): Promise<void> => {
    const subject = subjectOf(order)
    const seconds = Math.round((clock.nowMs() - sinceMs) / 1000)
    const evidence = { cutOff: cutOffWords(order), seconds, ending }
    const node = 'node' in order ? order.node : null
    await raiseAlert(core, wantedAlert('cut_off_delayed', subject, evidence, { node, sinceMs }))
  }

  const tell = (one: PendingCutOff, ending: string): void =>
    void alertOnce(one, ending).catch((error: unknown) => log.warn({ err: error }, 'a delayed cut-off raised no alert'))

  const durable = (one: PendingCutOff): void => {
    over(one.order)
    log.warn({ cutOff: cutOffKey(one.order) }, `${cutOffWords(one.order)} is committed`)
    tell(one, 'until the store could commit it')
  }

  /** Operators have undone it, or given the order at another replica and undone that: it must not be carried out now. */
  const overruled = async ({ order, orderedMs }: PendingCutOff): Promise<boolean> => {
    const type = aboutOrder(order)
    if (type.length === 0) return false
    const node = 'node' in order ? order.node : null
    const entries = await store.journal.read({ after: null, last: entriesRead, limit: entriesRead, node, type })
    return isOverruled(
      order,
      entries.flatMap(({ entry }) => (entry.atMs > orderedMs ? [entry.type] : [])),
    )
  }

  const dropOverruled = (one: PendingCutOff): void => {
    over(one.order)
    log.error(
      { cutOff: cutOffKey(one.order), by: one.order.by.actor, sinceMs: one.sinceMs },
      `${cutOffWords(one.order)} is dropped: operators have undone it at another replica since it was ordered`,
    )
    tell(
      one,
      'and is dropped: operators have undone it at another replica since. Order it again where it is still wanted',
    )
  }

  /** A commit that lost its race may be decided otherwise, or refused: what it denied early is then in no store. */
  const takeBack = async (early: readonly Denial[]): Promise<void> => {
    const denied = [...[...pending.values()].map((one) => one.denials), ...[...underWay].filter((one) => one !== early)]
    const inForce = new Set(denied.flat().map(denialKey))
    for (const denial of early.filter((one) => !inForce.has(denialKey(one))))
      await denyList
        .reload(denial)
        .catch((error: unknown) => log.warn({ err: error }, 'a denial could not be compared with the store; it stays'))
  }

  const lookAtReplicas = async (): Promise<void> => {
    lookedMs = clock.monotonicMs()
    const leased = await store.replicas.leased()
    others = leased.filter(({ number }) => number !== store.replicas.self).map(({ name }) => name)
  }

  /** As far as they can be listed in a second: those of the last look, else. */
  const knowReplicas = async (): Promise<void> => {
    const looking = lookAtReplicas().catch((error: unknown) =>
      log.debug({ err: error }, 'the replicas could not be listed'),
    )
    await Promise.race([looking, sleep(timers, 1000)])
  }

  return {
    async run(order, attempt) {
      let denials: readonly Denial[] = []
      const early: Denial[] = []
      underWay.add(early)
      const watched: Store = {
        ...store,
        commit(change, fencingToken) {
          denials = change.writes.flatMap((write) => (write.put === 'denial' ? [write.value] : []))
          // A database that does not answer is waited for; the machine that was stolen is not.
          const cancel = timers.after(denyEarlyMs, () => {
            early.push(...denials)
            deny(denials)
          })
          return store.commit(change, fencingToken).finally(cancel)
        },
      }
      try {
        const done = await attempt(watched)
        const one = pending.get(cutOffKey(order))
        if (one !== undefined && !isRefusal(done)) durable(one)
        await takeBack(early)
        return done
      } catch (error) {
        if (!(error instanceof StoreFault) && store.trouble() === null) throw error
        log.warn({ err: error, cutOff: cutOffKey(order) }, 'a cut-off could not be committed')
        return await keep(order, denials)
      } finally {
        underWay.delete(early)
      }
    },
    enforce: () => deny([...pending.values()].flatMap((one) => one.denials)),
    async repeat(perform) {
      if (clock.monotonicMs() - lookedMs >= lookAtReplicasMs && store.trouble() === null) await knowReplicas()
      for (const one of [...pending.values()]) {
        try {
          if (await overruled(one)) {
            // Ordered once more meanwhile, it is judged anew.
            if (pending.get(cutOffKey(one.order)) === one) dropOverruled(one)
            continue
          }
          const done = await perform(one.order)
          // Committed by a call meanwhile, or replaced by a later order.
          const now = pending.get(cutOffKey(one.order))
          if (now === undefined || !isSameOrder(now.order, one.order)) continue
          if (!isRefusal(done)) durable(one)
          else if (done.retryAfterMs === null) {
            // Another replica was given the same order, or the node is gone.
            log.warn(
              { cutOff: cutOffKey(one.order), code: done.code },
              'a pending cut-off was refused when it was repeated, and is dropped',
            )
            over(one.order)
          }
        } catch (error) {
          log.debug({ err: error }, 'a pending cut-off is tried again')
          return
        }
      }
    },
    warnings: () =>
      [...pending.values()].map(
        ({ order }) => `${cutOffWords(order)} is in force at this replica only: it is not committed yet`,
      ),
  }
}
