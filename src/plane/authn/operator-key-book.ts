// Which rows of operator keys grant something. A row counts with a good MAC only, and never once the journal has said that
// the key is revoked: an older row put back into the database has a good MAC. A row without one is adopted where proven
// entries of the journal vouch for it: those of a release before 0.2.1, also of a replica of that release that still runs.

import { decideAdoptKey, journalVouches, type KeySeal, type KeyVoucher } from '#domain/operators/operator-keys.ts'
import type { Row } from '#domain/core/change.ts'
import { boundedText } from '#domain/core/decision.ts'
import type { EntryType, JournalEntry } from '#domain/core/journal-entry.ts'
import type { OperatorKey } from '#domain/core/principal.ts'
import { commitOnce } from '#plane/core/commit-decision.ts'
import type { Feed } from '#plane/core/feed.ts'
import { settleAlert, type SettleDeps } from '#plane/alerts/settle-alert.ts'
import type { StandingAlerts } from '#plane/alerts/standing-alerts.ts'
import type { Store } from '#plane/store/contract/store.ts'
import type { Log } from '#platform/log.ts'

export type KeyBookDeps = SettleDeps & {
  readonly store: Pick<Store, 'get' | 'commit' | 'operatorKeys' | 'journal'>
  readonly feed: Feed
  readonly keySeal: KeySeal
  readonly alerts: Pick<StandingAlerts, 'all'>
  readonly log: Log
}

export type KeyBook = {
  /** Whether a live row is a key of this domain. One that is not raises an alert. */
  grants(key: Row<OperatorKey>): Promise<boolean>
  /** The hashes of those live rows that grant nothing; changes and raises nothing. */
  forged(keys: readonly Row<OperatorKey>[]): Promise<ReadonlySet<string>>
  /** Looks at every row: adopts what the journal vouches for, and raises and resolves alerts about the rest. */
  lookAtAll(): Promise<void>
}

const by = { actor: 'system:operator-keys', source: null, correlation: null }
const types = ['operator_key.created', 'operator_key.adopted', 'operator_key.revoked'] as const
const pageSize = 500
/** A forged row is not looked up in the journal again for each call that presents it. */
const refusedForMs = 10_000

export const openKeyBook = async (deps: KeyBookDeps): Promise<KeyBook> => {
  const { store, keySeal, log } = deps
  const revoked = new Set<string>()
  deps.feed.subscribe(({ entries }) => {
    for (const { entry } of entries) if (entry.type === 'operator_key.revoked') revoked.add(voucherOf(entry).keyId)
  })
  for (const { keyId } of await vouchers(store, ['operator_key.revoked'])) revoked.add(keyId)

  /** By hash: the version that was refused, and when. */
  const refused = new Map<string, { readonly version: number; readonly atMs: number }>()

  const raise = async ({ value }: Row<OperatorKey>): Promise<void> => {
    const subject = boundedText(value.id, 64)
    const why = revoked.has(value.id)
      ? 'the journal says that it was revoked, and its row says otherwise'
      : 'no plane of this domain wrote its row'
    const reason = `operator key ${subject} (${boundedText(value.name, 64)}, ${boundedText(value.role, 32)}) grants nothing: ${why}. Find out who writes to the database; then: muster key revoke ${subject}`
    const about = { kind: 'operator_key_forged', subject, node: null } as const
    const wanted = { ...about, severity: 'critical', reason, sinceMs: null } as const
    await settleAlert(deps, async () => ({ about, wanted, reliedOn: [] }))
  }

  const isVouchedFor = async ({ value }: Row<OperatorKey>): Promise<boolean> =>
    journalVouches(value, keySeal.fingerprint(value), await vouchers(store, types))

  const adopt = async (key: Row<OperatorKey>): Promise<boolean> => {
    if (!(await isVouchedFor(key))) return false
    const { change } = decideAdoptKey({ key, keySeal, by, nowMs: deps.clock.nowMs() })
    const outcome = await commitOnce(deps, change)
    // Lost to another replica that adopts it, or to its revocation: the row says which.
    if (outcome === 'lost-race') return isGood(await store.get('operator-key', key.value.hash))
    log.info({ key: key.value.id }, 'an operator key without a MAC was adopted: the journal vouches for it')
    return true
  }

  const isSound = (key: OperatorKey): boolean =>
    key.revokedAtMs === null && keySeal.isSealed(key) && !revoked.has(key.id)
  const isGood = (key: Row<OperatorKey> | null): boolean => key !== null && isSound(key.value)

  const grants = async (key: Row<OperatorKey>): Promise<boolean> => {
    if (key.value.revokedAtMs !== null) return false
    if (isGood(key)) return true
    const nowMs = deps.clock.monotonicMs()
    const before = refused.get(key.value.hash)
    if (before?.version === key.version && nowMs - before.atMs < refusedForMs) return false
    if (!revoked.has(key.value.id) && !keySeal.isSealed(key.value) && (await adopt(key))) return true
    refused.set(key.value.hash, { version: key.version, atMs: nowMs })
    log.error(
      { key: boundedText(key.value.id, 64) },
      'an operator key that no plane of this domain wrote is in the store',
    )
    await raise(key)
    return false
  }

  return {
    grants,
    async forged(keys) {
      const doubted = keys.map(({ value }) => value).filter((key) => key.revokedAtMs === null && !isSound(key))
      const isOpen = (key: OperatorKey): boolean => !revoked.has(key.id) && !keySeal.isSealed(key)
      // Read once for all of them: there are as many entries as there ever were keys.
      const known = doubted.some(isOpen) ? await vouchers(store, types) : []
      const isFine = (key: OperatorKey): boolean => isOpen(key) && journalVouches(key, keySeal.fingerprint(key), known)
      return new Set(doubted.filter((key) => !isFine(key)).map(({ hash }) => hash))
    },
    async lookAtAll() {
      const forged = new Set<string>()
      for (const key of await store.operatorKeys()) {
        if (key.value.revokedAtMs !== null || (await grants(key))) continue
        forged.add(boundedText(key.value.id, 64))
      }
      for (const [hash, { atMs }] of refused) if (deps.clock.monotonicMs() - atMs >= refusedForMs) refused.delete(hash)
      for (const subject of [...deps.alerts.all()]
        .filter(({ kind }) => kind === 'operator_key_forged')
        .map((alert) => alert.subject))
        if (!forged.has(subject)) {
          const about = { kind: 'operator_key_forged', subject, node: null } as const
          await settleAlert(deps, async () => ({ about, wanted: null, reliedOn: [] }))
        }
    },
  }
}

/** Proven entries only, oldest first. There are as many as there ever were keys. */
const vouchers = async (
  { journal }: Pick<Store, 'journal'>,
  type: readonly EntryType[],
): Promise<readonly KeyVoucher[]> => {
  const found: KeyVoucher[] = []
  for (let after: Awaited<ReturnType<typeof journal.read>>[number]['cursor'] | null = null; ;) {
    const page = await journal.read({ after, last: null, limit: pageSize, node: null, type })
    for (const { entry } of page) if (await journal.isProven(entry.chain, entry.sequence)) found.push(voucherOf(entry))
    after = page.at(-1)?.cursor ?? null
    if (page.length < pageSize || after === null) return found
  }
}

const voucherOf = ({ type, atMs, actor, body }: JournalEntry): KeyVoucher => ({
  type: type as KeyVoucher['type'],
  atMs,
  actor,
  keyId: textOf(body['key_id']),
  name: textOf(body['name']),
  role: textOf(body['role']),
  fingerprint: typeof body['fingerprint'] === 'string' ? body['fingerprint'] : null,
})

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
