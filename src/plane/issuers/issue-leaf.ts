// The certificate of a program or a worker, signed here or outside: read, decide, sign, commit, answer. As for nodes (identity/issue.ts), what an
// outside issuer has signed is handed out only if it is decided once more, on what is there by then.

import type { IssuedCertificate, SigningOrder } from '#domain/core/certificate.ts'
import type { Attribution, ChangePart, Row } from '#domain/core/change.ts'
import { builtIn } from '#domain/core/profile.ts'
import { isRefusal, type Refusal } from '#domain/core/refusal.ts'
import { orderEnded, type CertifiedSlot } from '#domain/issuers/order-changes.ts'
import type { Order } from '#domain/issuers/order.ts'
import type { Intended } from '#domain/identity/node-certificate.ts'
import { spkiHash } from '#pki/keys.ts'
import { fromPem } from '#pki/pem.ts'
import { nodeTries, retryLostRaces } from '#plane/core/commit-decision.ts'
import type { SignedOrder } from './order-request.ts'
import type { OutsideOrders } from './outside-orders.ts'
import type { Attempt } from './outside-signer.ts'

export type LeafAdmitted = {
  readonly kind: 'admitted'
  readonly facts: {
    /** To an outside issuer, open for the same certificate. Null: none is, or it is for another key. */
    readonly ordered: Row<Order> | null
    readonly by: Attribution
    readonly nowMs: number
  }
  readonly order: SigningOrder
}

export type LeafRequest<A extends LeafAdmitted, R> = {
  /** Reads and decides; called again whenever the commit lost a race, and when an outside issuer has signed. */
  decide(): Promise<A | Answered<R> | Refusal | 'lost-race'>
  /** Asked before anything is signed. */
  limit(): Refusal | null
  /** The request as it came, PEM. */
  readonly csr: string
  signer(admission: A): LeafSigner
  sign(order: SigningOrder): Promise<IssuedCertificate | Refusal>
  intend(admission: A, spki: string): Intended
  /** Commits what was signed, with what goes with it. */
  handOut(admission: A, signed: IssuedCertificate, extra: Required<ChangePart>): Promise<R | 'lost-race'>
}

/** Without anything being signed. */
export type Answered<R> = { readonly kind: 'answered'; readonly answer: R }

export type LeafSigner = {
  /** By name. */
  readonly issuer: string
  readonly kind: Attempt['kind']
  readonly purpose: Attempt['purpose']
  /** Those that it has. */
  readonly slots: readonly CertifiedSlot[]
  /** The hash of the token that the request came with; null: with none. */
  readonly token: string | null
}

export const issueLeaf = async <A extends LeafAdmitted, R>(
  orders: Pick<OutsideOrders, 'place'>,
  request: LeafRequest<A, R>,
): Promise<R | Refusal> => {
  /** Its certificate is here, and not handed out yet. */
  let signed: SignedOrder | null = null
  const declined = async (why: string): Promise<void> => {
    const before = signed
    signed = null
    await before?.decline(why)
  }
  try {
    return await retryLostRaces<R | Refusal, Refusal>(nodeTries, async () => {
      const verdict = await request.decide()
      if (verdict === 'lost-race') return verdict
      if (verdict.kind !== 'admitted') {
        await declined(verdict.kind === 'refused' ? `refused: ${verdict.code}` : 'another one was issued meanwhile')
        return verdict.kind === 'refused' ? verdict : verdict.answer
      }
      const signer = request.signer(verdict)
      if (signed !== null && !(await signed.answers(verdict.order, signer.issuer === signed.issuer ? [] : null)))
        await declined('what is ordered has changed')
      if (signed !== null) {
        const outcome = await request.handOut(verdict, signed.certificate, await signed.completion(verdict.facts.nowMs))
        if (outcome === 'lost-race') return outcome
        signed.done()
        signed = null
        return outcome
      }
      const limited = request.limit()
      if (limited !== null) return limited
      if (signer.issuer === builtIn) return signedHere(request, verdict)
      const placed = await placeOutside(orders, request, verdict, signer)
      if (placed === 'lost-race' || placed === 'decide-again' || placed.kind === 'refused') return placed
      signed = placed
      return 'decide-again'
    })
  } finally {
    await declined('its request was given up')
  }
}

const noPart: Required<ChangePart> = { reads: [], writes: [], entries: [] }

const signedHere = async <A extends LeafAdmitted, R>(
  { sign, handOut }: LeafRequest<A, R>,
  verdict: A,
): Promise<R | Refusal | 'lost-race'> => {
  const { order, facts } = verdict
  const certificate = await sign(order)
  if (isRefusal(certificate)) return certificate
  const { ordered, by, nowMs } = facts
  const ended = ordered === null ? null : orderEnded(ordered, { id: order.id, spki: certificate.spki, by, nowMs })
  return handOut(verdict, certificate, ended ?? noPart)
}

const placeOutside = <A extends LeafAdmitted, R>(
  orders: Pick<OutsideOrders, 'place'>,
  { csr, intend }: LeafRequest<A, R>,
  verdict: A,
  { issuer, kind, purpose, slots, token }: LeafSigner,
): ReturnType<OutsideOrders['place']> => {
  const request = fromPem('CERTIFICATE REQUEST', csr)
  if (request === null) throw new Error('a request that was read before cannot be read')
  const { order, facts } = verdict
  return orders.place({
    ...{ kind, purpose, request, order, slots, token, ordered: facts.ordered, by: facts.by, nowMs: facts.nowMs },
    issuer: { issuer, reads: [], hasOther: false },
    intent: intend(verdict, spkiHash(order.publicKey)),
    // Renewals would come faster than they can be served.
    leastLifetimeMs: order.lifetimeMs / 2,
  })
}
