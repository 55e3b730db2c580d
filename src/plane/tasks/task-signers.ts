// The keys that sign tasks, as a replica holds them: the row of the domain, and the private key of the one that signs. Whichever
// replica is first makes the first one; each follows what another commits.

import type { Attribution, Row } from '#domain/core/change.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import {
  decideFirstSigner,
  decideRenumber,
  decideRotate,
  decideRotateBack,
  decideRotateNow,
  decideSignersAnew,
  decideSignersDue,
  decideWithdraw,
  isVerifier,
  signersKey,
  signingOf,
  type MadeKey,
  type SignerFacts,
  type SignersDecided,
  type TaskSigners,
  type Withdrawal,
} from '#domain/tasks/signers.ts'
import { generateKey, keyId } from '#pki/keys.ts'
import type { Signer } from '#pki/signer.ts'
import { sparingSigner } from './sparing-signer.ts'
import { commitDecision, commitOnce } from '#plane/core/commit-decision.ts'
import type { Core } from '#plane/core/core.ts'
import { takeTurns } from '#plane/core/turns.ts'
import type { UpkeepTask } from '#plane/core/upkeep.ts'
import { withRoom, type KeyCustody } from '#plane/keys/key-custody.ts'
import { lostSignerText } from '#plane/keys/key-inventory.ts'
import { isReference, type NewKeyPlace } from '#plane/keys/key-reference.ts'
import { isKeyUnavailable } from '#plane/keys/key-unavailable.ts'
import { makeKeyElsewhere, signerOfKept } from '#plane/keys/keys-elsewhere.ts'
import { UpgradeUnfinished } from '#plane/store/contract/store-errors.ts'
import { formatStatement } from '#wire/core/statement.ts'
import type { TaskEnvelope } from '#wire/core/task-statements.ts'

export type TaskSigner = {
  /** Of the one that signs. Null: nothing can be signed now, because there is none yet or its private key is not here. */
  key(): string | null
  /** Its key is elsewhere and could not be used a moment ago: whatever is read now is read for nothing. */
  isResting(): boolean
  /**
   * The row as it is in the store now, where the key that signs by it is the one that signs here. Null: nothing may be signed now,
   * since this replica has not received a rotation or a withdrawal yet; it looks, so that the caller may ask again soon.
   */
  confirmed(): Promise<Row<TaskSigners> | null>
  /** A statement of kind `task`. Throws where `key` is null. */
  sign(value: Omit<TaskEnvelope, 'key'>): string | Promise<string>
}

export type Rotation = 'usual' | 'now' | 'back'
export type Changed = { readonly kind: 'changed' | 'unchanged'; readonly signers: TaskSigners }

export type TaskSignersHere = TaskSigner & {
  /** As the store has it now; null: there is none yet. */
  stored(): Promise<Row<TaskSigners> | null>
  rotate(how: Rotation, by: Attribution): Promise<Changed | Refusal>
  withdraw(wanted: Withdrawal, by: Attribution): Promise<Changed | Refusal>
  /** Called with the new number whenever the row has changed, by whichever replica. */
  onNumber(run: (number: number) => void): void
  /** Sentences for operators. */
  warnings(): readonly string[]
  readonly upkeep: UpkeepTask
}

export type TaskSignerParts = {
  readonly custody: KeyCustody
  /** Where keys of signers are made; left out or null: they are sealed here. */
  readonly keyPlace?: NewKeyPlace | null
  readonly settings: () => Pick<DomainSettings, 'clockToleranceMs'>
  /** Done before the first signer is made: what has to be so once there is one. */
  readonly beforeFirst: () => Promise<void>
}

const role = 'task-signer'
const forgedSignersText =
  'the row of the task signers in the database is not as a plane wrote it: nothing is signed. Find out who writes to the database; then: muster signer rotate --now'
const system: Attribution = { actor: 'system:signers', source: null, correlation: null }
/** How long a withdrawal waits for a key that is made elsewhere. One that is made later is left there, and named by nothing. */
const longestCutOffMs = 1000
/** Cheap when nothing is due. */
const lookEveryMs = 5000
/** Reads what every node has reported; and a node that lies makes all others fetch a statement no more often than this. */
const numbersEveryMs = 600_000

export const openTaskSigners = async (
  core: Core,
  { custody, keyPlace = null, settings, beforeFirst }: TaskSignerParts,
): Promise<TaskSignersHere> => {
  const { store, feed, clock, log } = core
  const inTurn = takeTurns()
  const listeners: ((number: number) => void)[] = []
  let known: TaskSigners | null = null
  let signing: { readonly id: string; readonly key: Signer; isResting(): boolean } | null = null

  const sparing = (kept: string, key: Signer) => {
    if (!isReference(kept)) return { key, isResting: () => false }
    const spared = sparingSigner(key, clock)
    return { key: spared, isResting: () => spared.isResting() }
  }
  const hold = (signers: TaskSigners | null): void => {
    known = signers
    const of = signers === null || signers.forged ? null : signingOf(signers)
    const id = of?.key ?? null
    if (signing?.id === id) return
    const kept = id === null ? null : custody.find({ role, id })
    const key =
      kept === null || of === null ? null : signerOfKept(custody.elsewhere, kept, Buffer.from(of.spki, 'base64'))
    signing = id === null || key === null ? null : { id, ...sparing(kept ?? '', key) }
  }
  const stored = async (): Promise<Row<TaskSigners> | null> => {
    const row = await store.get('task-signers', signersKey)
    // Nobody says when a row is changed behind the back of the planes, or put back.
    if (row !== null && (row.value.forged || known?.forged)) hold(row.value)
    return row
  }
  const look = async (): Promise<void> => {
    const row = await stored()
    await custody.refresh()
    // What was published meanwhile is newer.
    if (known === null || (row !== null && row.value.number >= known.number)) hold(row?.value ?? null)
  }
  const lookSoon = (): void =>
    void inTurn(look).catch((error: unknown) => log.warn({ err: error }, 'the task signers could not be looked at'))
  const soon = <T>(made: Promise<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      const late = (): void => reject(new Error(`it was not made within ${longestCutOffMs / 1000} s`))
      const cancel = core.timers.after(longestCutOffMs, late)
      made.then(resolve, reject).finally(cancel)
    })
  /** Ed25519 wherever it is: agents of every release that may run know it. A withdrawal waits for no token. */
  const newSignerKey = async (isCutOff: boolean): Promise<{ readonly spki: Uint8Array; readonly kept: string }> => {
    const here = () => {
      const key = generateKey('ed25519')
      return { spki: key.spki, kept: key.pkcs8Pem() }
    }
    if (keyPlace === null) return here()
    try {
      // A replica of the release before could not sign with it, nor start.
      if (store.unfinishedUpgrade() !== null)
        throw new UpgradeUnfinished('the key of a task signer in a token or in Transit is new in this release')
      const making = makeKeyElsewhere(keyPlace, role, 'ed25519', {
        elsewhere: custody.elsewhere,
        random: core.random,
      })
      const { spki, reference } = await (isCutOff ? soon(making) : making)
      return { spki, kept: `${reference}\n` }
    } catch (error) {
      if (!isCutOff) throw error
      log.warn({ err: error }, 'the key of the next task signer is made here: what takes rights away does not wait')
      return here()
    }
  }
  const make = async (isCutOff: boolean): Promise<MadeKey> => {
    const { spki, kept } = await newSignerKey(isCutOff)
    const made = { key: keyId(spki), spki: Buffer.from(spki).toString('base64') }
    const keep = (): Promise<void> => custody.keep({ role, id: made.key }, kept)
    // Durable before the commit that names it; a crash in between leaves a key that no row names.
    await (isCutOff ? withRoom(store, keep) : keep())
    return made
  }
  const makeFirst = (): Promise<void> =>
    store.exclusively(async () => {
      await look()
      if (known !== null) return
      await beforeFirst()
      const made = await make(false)
      const first = decideFirstSigner({ made, by: system, nowMs: clock.nowMs() })
      if ((await commitOnce(core, first.change)) !== 'lost-race') return
      await custody.drop({ role, id: made.key })
      await look()
    })

  type Verdict = SignersDecided | { readonly kind: 'unchanged' } | Refusal
  type Wanted = {
    readonly by: Attribution
    readonly isCutOff: boolean
    readonly isAnew?: boolean
    decide(facts: SignerFacts): Verdict
  }
  const change = (wanted: Wanted): Promise<Changed | Refusal> =>
    inTurn(async () => {
      // Replicas of 0.5 know no signers, and their schema has no place for them. In a later upgrade a signer can be withdrawn at any time.
      if ((await stored()) === null && store.unfinishedUpgrade() !== null)
        return refuse('UPGRADE_UNFINISHED', 'task signers are changed')
      // A replica that starts sets aside what no row names, as the key that is made here until it is committed.
      return store.exclusively(() => decideWithKey(wanted))
    })
  const decideWithKey = async ({ by, isCutOff, isAnew = false, decide }: Wanted): Promise<Changed | Refusal> => {
    const made = await make(isCutOff)
    const done = await commitDecision(core, async () => {
      const row = await stored()
      if (row === null) return refuse('SIGNERS_NOT_READY')
      const { clockToleranceMs: toleranceMs } = settings()
      if (row.value.forged && !isAnew) return refuse('SIGNERS_NOT_READY', forgedSignersText)
      return (row.value.forged ? decideSignersAnew : decide)({ row, made, toleranceMs, by, nowMs: clock.nowMs() })
    })
    const signers = done.kind === 'committed' ? done.signers : ((await stored())?.value ?? null)
    if (signers?.signers.every(({ key }) => key !== made.key) !== false) await custody.drop({ role, id: made.key })
    if (done.kind === 'refused') return done
    // What was decided is in force; the next round drops what is left.
    await dropEnded().catch((error: unknown) =>
      log.warn({ err: error }, 'the key of a task signer could not be dropped'),
    )
    return signers === null ? refuse('SIGNERS_NOT_READY') : { kind: changedOr(done.kind), signers }
  }
  /** Those of retired and withdrawn ones. Every round looks: a crash may come between their commit and this. */
  const dropEnded = async (): Promise<void> => {
    const ended = known?.signers.filter((one) => !isVerifier(one)) ?? []
    for (const { key: id } of ended) if (custody.has({ role, id })) await custody.drop({ role, id })
  }
  let numbersAtMs = -Infinity
  const highestReported = async (): Promise<number> => {
    if (clock.monotonicMs() - numbersAtMs < numbersEveryMs) return 0
    numbersAtMs = clock.monotonicMs()
    return Math.max(0, ...(await store.countTaskVerifiers()).keys())
  }
  const maintain = (): Promise<void> =>
    inTurn(async () => {
      if (store.sealedKeys !== null || known === null) await look()
      const token = store.replicas.leadership()
      if (token === null) return
      if (known === null) return store.unfinishedUpgrade() === null ? makeFirst() : undefined
      const row = await stored()
      if (row === null || row.value.forged) return
      const { clockToleranceMs: toleranceMs } = settings()
      const facts = { row, toleranceMs, by: system, nowMs: clock.nowMs() }
      const due = decideSignersDue(facts) ?? decideRenumber(facts, await highestReported())
      // Lost to another replica: the next round looks again.
      if (due !== null) await commitOnce(core, due.change, token)
      await dropEnded()
    })

  feed.subscribe('task signers', ({ writes }) => {
    for (const write of writes) {
      if (write.put !== 'task-signers') continue
      hold(write.value)
      for (const run of listeners) run(write.value.number)
      // A key that another replica has made is not seen here before the next look.
      if (signing === null) lookSoon()
    }
  })
  await store.exclusively(async () => {
    await look()
    await sortKeys(custody, known)
    hold(known)
  })
  if (known === null && store.unfinishedUpgrade() === null)
    await makeFirst().catch((error: unknown) => {
      // The leader tries again; until then no task is sent.
      if (!isKeyUnavailable(error)) throw error
      log.warn({ err: error }, 'the first task signer could not be made')
    })

  return {
    key: () => signing?.id ?? null,
    isResting: () => signing?.isResting() === true,
    async confirmed() {
      const row = await stored()
      if (row === null || row.value.forged || signing === null) return null
      if (signingOf(row.value)?.key === signing.id) return row
      lookSoon()
      return null
    },
    sign(value) {
      if (signing === null) throw new Error('no task can be signed: the private key of the task signer is not here')
      const { id, key } = signing
      return formatStatement('task', { ...value, key: id }, (bytes) => key.sign(bytes))
    },
    stored,
    rotate: (how, by) => change({ by, isCutOff: false, isAnew: how === 'now', decide: decisions[how] }),
    withdraw: (wanted, by) => change({ by, isCutOff: true, decide: (facts) => decideWithdraw(facts, wanted) }),
    onNumber: (run) => void listeners.push(run),
    warnings: () => {
      if (known?.forged) return [forgedSignersText]
      const id = known === null ? null : (signingOf(known)?.key ?? null)
      return id === null || signing !== null ? [] : [lostSignerText(id)]
    },
    upkeep: { name: 'task signers', where: 'each', everyMs: lookEveryMs, run: maintain },
  }
}

const decisions = { usual: decideRotate, now: decideRotateNow, back: decideRotateBack } as const satisfies Record<
  Rotation,
  unknown
>

const changedOr = (kind: 'committed' | 'unchanged'): Changed['kind'] => (kind === 'committed' ? 'changed' : kind)

/**
 * Runs exclusively, at a start: a key that no row names was never committed, or belongs to a newer store that may be put back. One that
 * a row names and that was set aside before returns.
 */
const sortKeys = async (custody: KeyCustody, signers: TaskSigners | null): Promise<void> => {
  const named = new Set(signers?.signers.filter(isVerifier).map(({ key }) => key))
  for (const name of custody.asideNames()) if (name.role === role && named.has(name.id)) await custody.takeBack(name)
  for (const name of custody.names()) if (name.role === role && !named.has(name.id)) await custody.setAside(name)
}
