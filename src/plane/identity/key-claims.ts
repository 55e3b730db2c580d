// What the store knows of the keys in a request, and the alert for a key that another node holds.

import { wantedAlert } from '#domain/alerts/alert-kinds.ts'
import type { KeyBan } from '#domain/core/certificate.ts'
import type { Row } from '#domain/core/change.ts'
import { otherHolders, type KeyClaimFacts } from '#domain/identity/key-claim.ts'
import type { KeyInRequest } from '#domain/identity/node-certificate.ts'
import type { NodeId } from '#domain/core/node.ts'
import type { PresentedRecovery, RecoveryRegistrationFacts } from '#domain/core/recovery-credential.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { raiseAlert } from '#plane/alerts/reconcile-alerts.ts'
import type { FlowCore } from '#plane/core/core.ts'

type Malformed = { readonly kind: 'malformed' }

/**
 * Read before the node: a claim that the node's own commit wrote is then never newer than the node's row, and a request that
 * is repeated at the same time is not taken for one that brings an earlier key.
 */
export const readKeyClaims = async (
  store: Pick<Store, 'get'>,
  key: KeyInRequest | Malformed,
  register: RecoveryRegistrationFacts | null,
): Promise<KeyClaimFacts> => {
  const recoveryKey = register?.kind === 'key' ? register.spki : null
  const [certified, registered, registeredBan] = await Promise.all([
    key.kind === 'key' ? store.get('key-claim', key.spkiHash) : null,
    recoveryKey === null ? null : store.get('key-claim', recoveryKey),
    recoveryKey === null ? null : store.get('key-ban', recoveryKey),
  ])
  return { certified, registered, registeredBan }
}

/** The ban of the recovery key somebody recovers or rehearses with. */
export const credentialBan = async (
  store: Pick<Store, 'get'>,
  credential: PresentedRecovery,
): Promise<Row<KeyBan> | null> => (credential.by === 'key' ? store.get('key-ban', credential.spki) : null)

/**
 * A machine brought a key that another node holds: both were started from one image or one copy of a state folder. One
 * alert for each key, which stays until an operator acknowledges it. A node that brings its own earlier key raises none.
 */
export const raiseCopiedImage = async (
  core: FlowCore,
  claimant: NodeId,
  claims: KeyClaimFacts,
  source: string | null,
): Promise<void> => {
  for (const claim of [claims.certified, claims.registered]) {
    const [holder, ...more] = otherHolders(claim, claimant)
    if (claim === null || holder === undefined) continue
    const { spki } = claim.value
    const holders = more.length === 0 ? holder : `${holder} and ${more.length} more`
    const { names, isNews } = noted(core, spki, claimant)
    const evidence = { claimants: names, holders, source }
    const sinceMs = isNews ? core.clock.nowMs() : null
    await raiseAlert(core, wantedAlert('copied_image', spki, evidence, { node: holder, sinceMs }))
  }
}

/** Who brought a key, as far as this process has seen it of late, and how many of them the alert has told. */
type Claimants = { readonly ids: Set<NodeId>; told: number; toldAtMs: number; seenAtMs: number }

const claimantsHere = new WeakMap<object, Map<string, Claimants>>()
const mostKeys = 100
const mostClaimants = 1000
const mostNamed = 5
const toldAgainMs = 10_000
const rememberedMs = 24 * 3_600_000

/**
 * A copied image brings hundreds of machines within a minute: the alert is raised again when they have doubled, or some time
 * after it was told last, and not for each of them.
 */
const noted = (
  { feed, clock }: FlowCore,
  spki: string,
  claimant: NodeId,
): { readonly names: string; readonly isNews: boolean } => {
  const nowMs = clock.monotonicMs()
  const known = claimantsOf(feed, spki, nowMs)
  if (known.ids.size < mostClaimants) known.ids.add(claimant)
  const { size } = known.ids
  const isFirst = known.told === 0
  const isDue = size >= known.told * 2 || (size > known.told && nowMs - known.toldAtMs >= toldAgainMs)
  if (isDue) [known.told, known.toldAtMs] = [size, nowMs]
  const more = size - mostNamed
  const named = [...known.ids].slice(0, mostNamed).join(', ')
  const others = more > 0 ? ` and ${more}${size === mostClaimants ? ' or' : ''} more` : ''
  // The first since a start is news only where no alert stands.
  return { names: `${named}${others}`, isNews: isDue && !isFirst }
}

/** Kept in the order they were seen in; whatever nobody has brought for a day is forgotten, and beyond so many the oldest. */
const claimantsOf = (feed: object, spki: string, nowMs: number): Claimants => {
  const keys = claimantsHere.get(feed) ?? new Map<string, Claimants>()
  claimantsHere.set(feed, keys)
  for (const [key, { seenAtMs }] of keys) {
    if (nowMs - seenAtMs < rememberedMs) break
    keys.delete(key)
  }
  const known = keys.get(spki) ?? { ids: new Set<NodeId>(), told: 0, toldAtMs: 0, seenAtMs: nowMs }
  known.seenAtMs = nowMs
  keys.delete(spki)
  keys.set(spki, known)
  const [oldest] = keys.keys()
  if (keys.size > mostKeys && oldest !== undefined) keys.delete(oldest)
  return known
}
