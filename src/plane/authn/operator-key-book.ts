// Which rows of operator keys grant something. A row counts with a good MAC only, and never once the journal has said that
// the key is revoked: an older row put back into the database has a good MAC. A row without one is adopted where proven
// entries of the journal vouch for it: those of a release before 0.2.1, also of a replica of that release that still runs.

import { wantedAlert, type WantedAlert } from '#domain/alerts/alert-kinds.ts'
import {
  decideAdoptKey,
  expiresSoon,
  journalVouches,
  type KeySeal,
  type KeyVoucher,
} from '#domain/operators/operator-keys.ts'
import { type Row, boundedText } from '#domain/core/change.ts'
import type { EntryType, JournalEntry } from '#domain/core/journal-entry.ts'
import type { OperatorKey } from '#domain/core/principal.ts'
import { commitOnce } from '#plane/core/commit-decision.ts'
import { entryPages } from '#plane/core/pages.ts'
import { raiseAlert, reconcileSource, type UnresolvedAlerts } from '#plane/alerts/reconcile-alerts.ts'
import type { Store } from '#plane/store/contract/store.ts'
import type { Core } from '#plane/core/core.ts'
import { parseIsoTime } from '#platform/clock.ts'

export type KeyBook = {
  /** Whether a live row is a key of this domain. One that is not raises an alert. */
  grants(key: Row<OperatorKey>): Promise<boolean>
  /** The hashes of those live rows that grant nothing; changes and raises nothing. */
  forged(keys: readonly Row<OperatorKey>[]): Promise<ReadonlySet<string>>
  /** Looks at every row: adopts what the journal vouches for, and raises and resolves alerts about the rest, and about keys that end soon. */
  lookAtAll(): Promise<void>
}

const by = { actor: 'system:operator-keys', source: null, correlation: null }
const types = ['operator_key.created', 'operator_key.adopted', 'operator_key.revoked'] as const
/** A forged row is not looked up in the journal again for each call that presents it. */
const refusedForMs = 10_000

export const openKeyBook = async (
  core: Omit<Core, 'timers'>,
  keySeal: KeySeal,
  alerts: Pick<UnresolvedAlerts, 'all'>,
): Promise<KeyBook> => {
  const { store, log } = core
  const revoked = new Set<string>()
  core.feed.subscribe('operator key book', ({ entries }) => {
    for (const { entry } of entries) if (entry.type === 'operator_key.revoked') revoked.add(voucherOf(entry).keyId)
  })
  for (const { keyId } of await vouchers(store, ['operator_key.revoked'])) revoked.add(keyId)

  /** By hash: the version that was refused, and when. */
  const refused = new Map<string, { readonly version: number; readonly atMs: number }>()

  const forgedAlert = ({ value: { id, name, role } }: Row<OperatorKey>): WantedAlert => {
    const subject = boundedText(id, 64)
    return wantedAlert('operator_key_forged', subject, { id: subject, name, role, isRevoked: revoked.has(id) })
  }

  const isVouchedFor = async ({ value }: Row<OperatorKey>): Promise<boolean> =>
    journalVouches(value, keySeal.fingerprint(value), await vouchers(store, types))

  const adopt = async (key: Row<OperatorKey>): Promise<boolean> => {
    if (!(await isVouchedFor(key))) return false
    const { change } = decideAdoptKey({ key, keySeal, by, nowMs: core.clock.nowMs() })
    const outcome = await commitOnce(core, change)
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
    const nowMs = core.clock.monotonicMs()
    const before = refused.get(key.value.hash)
    if (before?.version === key.version && nowMs - before.atMs < refusedForMs) return false
    if (!revoked.has(key.value.id) && !keySeal.isSealed(key.value) && (await adopt(key))) return true
    refused.set(key.value.hash, { version: key.version, atMs: nowMs })
    log.error(
      { key: boundedText(key.value.id, 64) },
      'an operator key that no plane of this domain wrote is in the store',
    )
    await raiseAlert(core, forgedAlert(key))
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
      const wanted: WantedAlert[] = []
      for (const key of await store.operatorKeys()) {
        if (key.value.revokedAtMs === null && !(await grants(key))) wanted.push(forgedAlert(key))
        else if (expiresSoon(key.value, core.clock.nowMs())) wanted.push(expiringAlert(key.value))
      }
      for (const [hash, { atMs }] of refused) if (core.clock.monotonicMs() - atMs >= refusedForMs) refused.delete(hash)
      await reconcileSource(core, alerts, {
        kinds: ['operator_key_forged', 'operator_key_expiring'],
        wanted: () => wanted,
      })
    },
  }
}

const expiringAlert = ({ id, name, role, expiresAtMs }: OperatorKey): WantedAlert =>
  wantedAlert('operator_key_expiring', id, { id, name, role, expiresAtMs: expiresAtMs ?? 0 })

/** Proven entries only, oldest first. There are as many as there ever were keys. */
const vouchers = async (
  { journal }: Pick<Store, 'journal'>,
  type: readonly EntryType[],
): Promise<readonly KeyVoucher[]> => {
  const found: KeyVoucher[] = []
  for await (const page of entryPages(journal, type))
    for (const { entry } of page) if (await journal.isProven(entry.chain, entry.sequence)) found.push(voucherOf(entry))
  return found
}

const voucherOf = ({ type, atMs, actor, body }: JournalEntry): KeyVoucher => ({
  type: type as KeyVoucher['type'],
  atMs,
  actor,
  keyId: textOf(body['key_id']),
  name: textOf(body['name']),
  role: textOf(body['role']),
  fingerprint: typeof body['fingerprint'] === 'string' ? body['fingerprint'] : null,
  expiresAtMs: typeof body['expires_at'] === 'string' ? parseIsoTime(body['expires_at']) : null,
})

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
