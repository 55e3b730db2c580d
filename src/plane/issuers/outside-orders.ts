// Orders to outside issuers, for the pipeline that hands out certificates (issue-certificate.ts): placed in a commit before anything is sent,
// signed and checked, and completed in the commit that hands the certificate out (docs/decisions/issuers.md).

import { wantedAlert } from '#domain/alerts/alert-kinds.ts'
import { readOf, type Read, type Row } from '#domain/core/change.ts'
import { refuse, refuseField, type Refusal } from '#domain/core/refusal.ts'
import type { Outcome } from '#domain/issuers/issuer-breaker.ts'
import { isSameOrder, orderEntry, placed, stepPart } from '#domain/issuers/order-changes.ts'
import {
  complete,
  decline,
  forRepeat,
  intend,
  isTakenOver,
  isToBeFound,
  orderedFor,
  refusedThere,
  settle,
  tryAgain,
  type Order,
} from '#domain/issuers/order.ts'
import type { OutsideIssuer } from '#domain/issuers/outside-issuer.ts'
import { serialBytes, serialOf } from '#domain/issuers/serial.ts'
import { readRequestNames } from '#pki/csr.ts'
import { spkiHash } from '#pki/spki.ts'
import { raiseAlert } from '#plane/alerts/reconcile-alerts.ts'
import { commitOnce } from '#plane/core/commit-decision.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import type { Core } from '#plane/core/core.ts'
import type { IssuerChoice } from './choose-issuer.ts'
import { askToSign } from './ask-to-sign.ts'
import { judgeAnswer, type JudgeParts } from './judge-answer.ts'
import { commitAsRead, commitStep, inOutbox, openOrderOf, revokeReturned, type StepStory } from './order-steps.ts'
import { openOrdersUnderWay, type OrdersUnderWay } from './orders-under-way.ts'
import type { OrderRequest, SignedOrder } from './order-request.ts'
import type { OutsideSigner, Returned } from './outside-signer.ts'

/** What stands before the issuers: slots, breakers, and a signer for each. */
export type IssuerDoor = {
  /** For one certificate, by the name of the issuer: waits for a slot. Refused where the issuer cannot sign now. */
  enter(name: string): Promise<EnteredIssuer | Refusal>
  /** By its id, to look for what was signed; without a slot. Null: it is gone, or its secrets are not here. */
  signerOf(id: string): Promise<OutsideSigner | null>
}

export type EnteredIssuer = {
  readonly kind: 'entered'
  readonly issuer: OutsideIssuer
  readonly signer: OutsideSigner
  /** Once, with what became of it: a further call changes nothing. */
  leave(outcome: Outcome): void
}

export type OutsideOrders = {
  /** Places an order for what was admitted, and has it signed. `decide-again`: what was in the way of it has ended. */
  place(request: OrderRequest): Promise<SignedOrder | Refusal | 'lost-race' | 'decide-again'>
  /** Who is to sign for a node. */
  readonly choose: IssuerChoice['choose']
  readonly stillSigns: IssuerChoice['stillSigns']
  /** It is under way in this process. */
  isUnderWay(order: string): boolean
}

export type OutsideOrderParts = JudgeParts & {
  readonly door: Pick<IssuerDoor, 'enter'>
  readonly choice: IssuerChoice
}

/** By then the leader has looked for what an issuer with serials of its own has signed. */
const lookedForMs = 5000
const unavailableForMs = 5000
/** What an issuer refuses it refuses until somebody has set it right, and each time costs two commits. */
const refusedForMs = 60_000

export const openOutsideOrders = (core: Core, parts: OutsideOrderParts): OutsideOrders => {
  const holds = openOrdersUnderWay()

  /** Null: nothing is in the way of a new order. */
  const makeWay = async (row: Row<Order>): Promise<Refusal | 'decide-again' | null> => {
    const { id } = row.value
    const others = await otherReplicas(core)
    switch (forRepeat(row.value, holds.has(id), others)) {
      case 'join':
        await holds.over(id)
        return 'decide-again'
      case 'wait':
        return busy('another plane has asked the issuer for this certificate')
      case 'settle':
        // A search can take long: the leader makes it.
        if (isToBeFound(row.value)) return busy('what the issuer has signed for it is being looked for')
        await commitAsRead(core, row, (order, nowMs) => settle(order, { others, found: null, nowMs }))
        return 'decide-again'
      case 'replace':
        // Another request is about to take its row.
        if (!holds.has(id)) return null
        await holds.over(id)
        return 'decide-again'
      case 'over':
        return 'decide-again'
    }
  }

  return {
    choose: parts.choice.choose,
    stillSigns: parts.choice.stillSigns,
    isUnderWay: holds.has,
    async place(request) {
      // step-ca compares what a request says beside its key with the order; nobody here asks for names by it.
      const names = readRequestNames(request.request)
      if (names.kind === 'malformed') return refuseField('CSR_INVALID', 'csr', names.why)
      if (names.hasAltNames)
        return refuseField('CSR_INVALID', 'csr', 'an outside issuer signs no request that asks for names itself')
      const ordered = request.ordered ?? (await openOrderOf(core.store, orderedFor(request.order.for)))
      const inTheWay = ordered === null ? null : await makeWay(ordered)
      if (inTheWay !== null) return inTheWay
      const entered = await parts.door.enter(request.issuer.issuer)
      if (entered.kind === 'refused') return entered
      // All of them were withdrawn: what it signs would be a violation, each time.
      if (parts.book.rootsOf(entered.issuer).length === 0) {
        entered.leave({ kind: 'not-asked' })
        return unavailable(entered.issuer, 'none of its roots is trusted any more')
      }
      try {
        return await placeAt(core, parts, holds, entered, ordered, request)
      } finally {
        entered.leave({ kind: 'not-asked' })
      }
    },
  }
}

const busy = (why: string): Refusal => ({ ...refuse('BUSY', why), retryAfterMs: lookedForMs })

const unavailable = ({ name }: OutsideIssuer, why: string, retryAfterMs = unavailableForMs): Refusal => ({
  ...refuse('ISSUER_UNAVAILABLE', `${name}: ${why}`),
  retryAfterMs,
})

/** With a lease. */
export const otherReplicas = async ({ store: { replicas } }: Pick<Core, 'store'>): Promise<ReadonlySet<number>> => {
  const { self } = replicas
  return new Set((await replicas.leased()).map(({ number }) => number).filter((number) => number !== self))
}

const placeAt = async (
  core: Core,
  parts: OutsideOrderParts,
  holds: OrdersUnderWay,
  { issuer, signer, leave }: EnteredIssuer,
  ordered: Row<Order> | null,
  {
    purpose,
    kind,
    request,
    intent,
    issuer: chosen,
    order: asked,
    leastLifetimeMs,
    slots,
    token,
    by,
    nowMs,
  }: OrderRequest,
): Promise<SignedOrder | Refusal | 'lost-race' | 'decide-again'> => {
  const { store, clock, random, log } = core
  const former = ordered !== null && isTakenOver(ordered.value, issuer.id) ? ordered : null
  const wanted = former === null ? asked : { ...asked, id: former.value.id }
  let issuerRow = await signingRow(store, issuer)
  if (issuerRow === null) return unavailable(issuer, 'it was changed a moment ago')

  const newSerial = (): string | null => (signer.abilities.takesSerial ? serialOf(random.bytes(serialBytes)) : null)
  const holder = store.replicas.self
  const order = intend({
    ...{ id: wanted.id, issuer: issuer.id, subject: wanted.for, spki: spkiHash(wanted.publicKey) },
    request: Buffer.from(request).toString('base64'),
    ...{ issuedAtMs: wanted.issuedAtMs, lifetimeMs: wanted.lifetimeMs, token },
    ...{ holder, serial: newSerial(), nowMs },
  })
  const relied = [...intent.reads, ...chosen.reads, readOf('outside-issuer', issuer.name, issuerRow)]
  const change = placed({
    ...{ order, former: ordered, slots, issuerName: issuer.name, by, nowMs },
    spared:
      ordered === null
        ? new Set()
        : await inOutbox(store, { order: ordered.value, revoke: openSerials(ordered.value) }),
    intent: { reads: relied, writes: intent.writes },
  })

  let row: Row<Order> = { value: order, version: (former?.version ?? 0) + 1 }
  const take = (...step: TakenStep): Promise<Row<Order> | null> => commitStep(core, row, ...step)

  const returned = async (): Promise<Returned | Refusal> => {
    const [{ serial }] = order.attempts as [Order['attempts'][number]]
    const answer = await askToSign(core, signer, { order: wanted, kind, purpose, request, serial }, async (why) => {
      const next = newSerial()
      const entries = [
        orderEntry(order, 'order.placed', by, clock.nowMs(), { issuer_name: issuer.name, again_after: why }),
      ]
      const taken = await take((now, atMs) => tryAgain(now, { holder, serial: next, nowMs: atMs }), { by, entries })
      row = taken ?? row
      return taken === null ? null : { serial: next }
    })
    if (answer.kind === 'returned') return answer
    const { kind: fate, why } = answer
    leave({ kind: fate === 'unsigned' ? 'refused' : 'fault', why })
    await take(
      (now, atMs) =>
        fate === 'fault'
          ? decline(now, { holder, why, serial: null, nowMs: atMs })
          : refusedThere(now, { holder, why, nowMs: atMs }),
      { by },
    )
    return unavailable(issuer, why, fate === 'unsigned' ? refusedForMs : unavailableForMs)
  }

  const signed = async (): Promise<SignedOrder | Refusal> => {
    const answer = await returned()
    if (answer.kind === 'refused') return answer
    const judged = await judgeAnswer(core, parts, {
      issuer,
      wanted,
      order: row.value,
      chain: answer.chain,
      leastLifetimeMs,
      clock: { aheadMs: signer.aheadMs, toleranceMs: (await domainSettingsRow(store)).value.clockToleranceMs },
    })
    if (judged.kind === 'violates') {
      const { fields, why, serial } = judged
      leave({ kind: 'fault', why })
      log.warn(
        { issuer: issuer.name, order: order.id, fields },
        'an outside issuer has returned something else than was ordered',
      )
      const entries = [judged.entry(by, clock.nowMs())]
      const story: StepStory = { by, why: 'violation', entries }
      const taken = await take((now, atMs) => decline(now, { holder, why, serial, nowMs: atMs }), story)
      if (taken === null && serial !== null) await revokeReturned(core, order, serial, story)
      await raiseAlert(core, wantedAlert('issuer_violation', issuer.name, { issuer: issuer.name, why }))
      return unavailable(issuer, `what it returned is not what was ordered (${fields.join(', ')})`)
    }
    leave({ kind: 'answered' })
    const { certificate, authorities, shortByMs } = judged
    if (shortByMs > 0)
      log.warn(
        { issuer: issuer.name, kind, shortByMs },
        'an outside issuer gives less time than is ordered: allow more there, or order less',
      )
    const { serial } = certificate
    /** As it was looked at last: a migration that has ended since loses this commit its race. */
    let stillSigns: readonly Read[] | null = null
    return {
      kind: 'signed',
      certificate,
      issuer: issuer.name,
      async answers(orderedNow, signs) {
        const found = await store.get('order', order.id)
        const isHeld = found?.version === row.version
        // A test, or a new credential, changes nothing about what was signed.
        const issuerNow = await signingRow(store, issuer)
        if (issuerNow === null) return false
        issuerRow = issuerNow
        stillSigns = signs
        return isHeld && stillSigns !== null && isSameOrder(orderedNow, wanted)
      },
      async completion(atMs) {
        const step = complete(row.value, { holder, serial, nowMs: atMs })
        if (step === null) throw new Error('an order was about to be completed that is not held here')
        const above = await authorities(atMs)
        const part = stepPart({ row, step, why: 'orphan', spared: new Set(), by, nowMs: atMs })
        return {
          reads: [
            ...part.reads,
            ...(stillSigns ?? []),
            readOf('outside-issuer', issuer.name, issuerRow),
            ...above.reads,
          ],
          writes: [...part.writes, ...above.writes],
          entries: [...part.entries, ...above.entries],
        }
      },
      done: () => holds.end(order.id),
      async decline(why) {
        try {
          const taken = await take((now, atMs) => decline(now, { holder, why, serial, nowMs: atMs }), { by })
          if (taken === null) await revokeReturned(core, order, serial, { by })
        } catch (error) {
          // The leader settles what cannot be written now.
          log.warn({ err: error, order: order.id }, 'an order to an outside issuer could not be ended')
        } finally {
          holds.end(order.id)
        }
      },
    }
  }

  if (holds.has(order.id)) {
    // Another request has taken the row meanwhile. A slot is not kept for the wait.
    leave({ kind: 'not-asked' })
    await holds.over(order.id)
    return 'decide-again'
  }
  holds.begin(order.id)
  let isOpen = false
  try {
    if ((await commitOnce(core, change)) === 'lost-race') return 'lost-race'
    const outcome = await signed()
    isOpen = outcome.kind === 'signed'
    return outcome
  } finally {
    if (!isOpen) holds.end(order.id)
  }
}

type TakenStep = Parameters<typeof commitStep> extends [unknown, unknown, ...infer Rest] ? Rest : never

/** Null: nothing is to be signed there any more. */
const signingRow = async (
  store: Pick<Core['store'], 'get'>,
  { id, name }: OutsideIssuer,
): Promise<Row<OutsideIssuer> | null> => {
  const row = await store.get('outside-issuer', name)
  return row?.value.id === id && row.value.state.kind === 'enabled' && row.value.forged !== true ? row : null
}

const openSerials = ({ attempts }: Order): readonly string[] =>
  attempts.flatMap(({ serial, fate }) => (fate.kind === 'open' && serial !== null ? [serial] : []))
