// The one pipeline that hands out certificates, of nodes, programs and workers: read, decide on a snapshot, sign, commit. What an outside issuer
// has signed is handed out only if it is decided once more, on what is there by then.

import type { IssuedCertificate, SigningOrder } from '#domain/core/certificate.ts'
import { mergeParts, type Attribution, type ChangePart, type Read, type Row } from '#domain/core/change.ts'
import { builtIn } from '#domain/core/profile.ts'
import { isRefusal, type Refusal } from '#domain/core/refusal.ts'
import { orderEnded } from '#domain/issuers/order-changes.ts'
import type { Order } from '#domain/issuers/order.ts'
import { fromPem } from '#pki/pem.ts'
import { spkiHash } from '#pki/spki.ts'
import { nodeTries, retryLostRaces } from '#plane/core/commit-decision.ts'
import type { ChosenIssuer } from './choose-issuer.ts'
import type { OrderRequest, SignedOrder } from './order-request.ts'
import type { OutsideOrders } from './outside-orders.ts'

/** The decision to sign. */
export type AdmittedRequest = {
  readonly kind: 'admitted'
  readonly facts: { readonly by: Attribution; readonly nowMs: number }
  readonly order: SigningOrder
}

/** What differs by whom the certificate is for. `R`: what the caller is answered with. */
export type IssueSteps<A extends AdmittedRequest, R> = {
  /** The request as it came, PEM. */
  readonly csr: string
  /** Reads and decides; called again whenever the commit lost a race, and when an outside issuer has signed. */
  decide(): Promise<A | Answered<R> | Refusal | 'lost-race' | 'decide-again'>
  /** The rate limit of what was admitted, asked before anything is signed. */
  limit(admission: A): Promise<Refusal | null>
  /** Who signs. `away`: an issuer that has just failed for this request; null: none has. */
  choose(admission: A, away: string | null): Promise<ChosenIssuer>
  /** What relies on it that what this issuer signed a moment ago is handed out; null: it is not. */
  stillSigns(admission: A, issuer: string): Promise<readonly Read[] | null>
  /** By the built-in issuer. */
  sign(order: SigningOrder): Promise<IssuedCertificate | Refusal>
  /** An order to an outside issuer, for the same certificate. Null: none is open, or it is for another key. */
  openOrder(admission: A): Row<Order> | null
  outside(admission: A, spki: string): OutsideTerms
  /** Commits what was signed, with `part`. */
  handOut(admission: A, signed: IssuedCertificate, part: Required<ChangePart>): Promise<R | 'lost-race'>
}

/** Without anything being signed. `answer` is called once what is signed already has been declined. */
export type Answered<R> = { readonly kind: 'answered'; answer(): Promise<R | Refusal | 'lost-race'> }

/** What an outside issuer is asked for, and what is committed with the order to it. */
export type OutsideTerms = Pick<OrderRequest, 'kind' | 'purpose' | 'intent' | 'leastLifetimeMs' | 'slots' | 'token'>

/** For certificates that one issuer signs, where no migration leads from it to another. */
export const byOneIssuer = <A extends AdmittedRequest>(
  nameOf: (admission: A) => string,
): Pick<IssueSteps<A, unknown>, 'choose' | 'stillSigns'> => ({
  choose: async (admission) => ({ issuer: nameOf(admission), reads: [], hasOther: false }),
  stillSigns: async (admission, issuer) => (nameOf(admission) === issuer ? [] : null),
})

/** Of a certificate without a profile: renewals of a shorter one would come faster than they can be served. */
export const leastLifetimeMs = ({ lifetimeMs }: SigningOrder): number => lifetimeMs / 2

export const issueCertificate = async <A extends AdmittedRequest, R>(
  orders: Pick<OutsideOrders, 'place'>,
  steps: IssueSteps<A, R>,
): Promise<R | Refusal> => {
  /** Of an outside issuer: its certificate is here, and not handed out yet. */
  let signed: SignedOrder | null = null
  /** The issuer that a migration leads to, and that has failed for this request: the one before it signs. */
  let away: string | null = null
  const declined = async (why: string): Promise<void> => {
    const before = signed
    signed = null
    await before?.decline(why)
  }
  try {
    return await retryLostRaces<R | Refusal, Refusal>(nodeTries, async () => {
      const verdict = await steps.decide()
      if (verdict === 'lost-race' || verdict === 'decide-again') return verdict
      if (verdict.kind === 'refused') {
        await declined(`refused: ${verdict.code}`)
        return verdict
      }
      if (verdict.kind === 'answered') {
        await declined('another one was issued meanwhile')
        return verdict.answer()
      }
      if (signed !== null && !(await signed.answers(verdict.order, await steps.stillSigns(verdict, signed.issuer))))
        await declined('what is ordered has changed')
      if (signed !== null) {
        const outcome = await steps.handOut(verdict, signed.certificate, await signed.completion(verdict.facts.nowMs))
        if (outcome === 'lost-race') return outcome
        signed.done()
        signed = null
        return outcome
      }
      const limited = away === null ? await steps.limit(verdict) : null
      if (limited !== null) return limited
      const chosen = await steps.choose(verdict, away)
      if (chosen.issuer === builtIn) return signedHere(steps, verdict, chosen)
      const placed = await placeOutside(orders, steps, verdict, chosen)
      if (placed === 'lost-race' || placed === 'decide-again') return placed
      if (placed.kind === 'refused') {
        if (!chosen.hasOther || !fallsBack.has(placed.code)) return placed
        away = chosen.issuer
        return 'decide-again'
      }
      signed = placed
      // Decided once more on what is there by now: it may have been revoked or halted meanwhile.
      return 'decide-again'
    })
  } finally {
    await declined('its request was given up')
  }
}

/** The request is in order, and this issuer alone does not sign it: an outside one takes no request that asks for names itself. */
const fallsBack: ReadonlySet<Refusal['code']> = new Set(['ISSUER_UNAVAILABLE', 'CSR_INVALID'])

/** The built-in issuer answers at once, and its order and certificate are one commit. */
const signedHere = async <A extends AdmittedRequest, R>(
  steps: IssueSteps<A, R>,
  verdict: A,
  { reads }: ChosenIssuer,
): Promise<R | Refusal | 'lost-race'> => {
  const { order, facts } = verdict
  const certificate = await steps.sign(order)
  if (isRefusal(certificate)) return certificate
  const { by, nowMs } = facts
  // The caller may have been on its way to an outside issuer before.
  const open = steps.openOrder(verdict)
  const ended = open === null ? {} : orderEnded(open, { id: order.id, spki: certificate.spki, by, nowMs })
  return steps.handOut(verdict, certificate, mergeParts([{ reads }, ended]))
}

/**
 * An issuer outside may be slow, and may sign what this process does not live to record: its order is committed before it is asked, and
 * the commit that hands the certificate out completes it.
 */
const placeOutside = <A extends AdmittedRequest, R>(
  orders: Pick<OutsideOrders, 'place'>,
  steps: IssueSteps<A, R>,
  verdict: A,
  issuer: ChosenIssuer,
): ReturnType<OutsideOrders['place']> => {
  const request = fromPem('CERTIFICATE REQUEST', steps.csr)
  if (request === null) throw new Error('a request that was read before cannot be read')
  const { order, facts } = verdict
  const { by, nowMs } = facts
  const terms = steps.outside(verdict, spkiHash(order.publicKey))
  return orders.place({ ...terms, issuer, request, order, ordered: steps.openOrder(verdict), by, nowMs })
}
