// Revocations on their way to outside issuers. What is denied here is found by the denials themselves, whichever flow wrote them, and gets
// a row; the leader sends the rows until the issuer has confirmed or the certificate has ended. A leader that dies leaves nothing behind:
// the next one looks at every denial once.

import {
  certificateHolder,
  certificateKey,
  denialKey,
  programsHolder,
  type CertificateRow,
  type Denial,
} from '#domain/core/certificate.ts'
import type { Row } from '#domain/core/change.ts'
import { isRefusal } from '#domain/core/refusal.ts'
import {
  issuerRevocationKey,
  queueRevocations,
  revocationDone,
  revocationGivenUp,
  revocationMisanswered,
  revocationPlace,
  type DeniedOutside,
  type IssuerRevocation,
} from '#domain/issuers/issuer-revocation.ts'
import { commitDecision, commitOnce } from '#plane/core/commit-decision.ts'
import type { Core } from '#plane/core/core.ts'
import { everyRow, rowPages } from '#plane/core/pages.ts'
import { startUpkeep } from '#plane/core/upkeep.ts'
import type { Led } from '#plane/cluster/leading.ts'
import { doublingWaitMs } from '#platform/timers.ts'
import { raiseAlert } from '#plane/alerts/reconcile-alerts.ts'
import { wantedAlert } from '#domain/alerts/alert-kinds.ts'
import type { KnownIssuers } from './known-issuers.ts'
import { AnotherSerial } from './outside-signer.ts'
import type { OutsideBook } from './outside-book.ts'
import type { OutsideIssuers } from './open-outside-issuers.ts'

export type OutboxParts = {
  readonly known: Pick<KnownIssuers, 'all'>
  readonly book: Pick<OutsideBook, 'find' | 'isEmpty'>
  readonly outside: Pick<OutsideIssuers, 'revoke'>
}

type Denied = { readonly denial: Denial; readonly receipt: string | null }

const atOnce = 4
const firstWaitMs = 1000
const longestWaitMs = 600_000
/** Of those that wait in vain, so that the others get their turn. */
const mostLookedAt = 2000

/** While this replica leads. */
export const leadIssuerOutbox = (core: Core, { known, book, outside }: OutboxParts): Led => {
  const { store, feed, clock, timers, log } = core
  const stopped = new AbortController()
  /** Denials to be looked at; a receipt that came with one is the one that it belongs to. */
  const denials = new Map<string, Denied>()
  const failures = new Map<string, { readonly times: number; readonly nextMs: number }>()
  const sending = new Map<string, Set<string>>()
  let lookedAtAll = false

  const unsubscribe = feed.subscribe('issuer outbox', ({ writes }) => {
    const receipt = writes.flatMap((write) => (write.put === 'receipt' ? [write.value] : []))[0]
    for (const write of writes)
      if (write.put === 'denial')
        denials.set(denialKey(write.value), { denial: write.value, receipt: receipt?.id ?? null })
  })

  /** Most are of certificates that were signed here: no row is read for those. */
  const isOfOthers = (denial: Denial): boolean => denial.kind !== 'certificate' || book.find(denial.issuer) !== null
  const lookAtAll = async (): Promise<void> => {
    for await (const denial of everyRow(store, 'denial', denialKey, { timers })) {
      if (denial.untilMs > clock.nowMs() && !denials.has(denialKey(denial)) && isOfOthers(denial))
        denials.set(denialKey(denial), { denial, receipt: await receiptOf(denial) })
    }
    lookedAtAll = true
  }
  const receiptOf = async (denial: Denial): Promise<string | null> => {
    if (denial.kind === 'issuer') return null
    const [certificate] = denial.kind === 'epoch' ? [] : await deniedBy(store, denial)
    const node = denial.kind === 'epoch' ? denial.node : holderIn(certificate)
    if (node === null) return null
    for await (const receipt of everyRow(store, 'receipt', ({ id }) => id, { where: { node } }))
      if (receipt.decidedAtMs === denial.atMs && (denial.kind === 'epoch' ? receipt.epoch === denial.epoch : true))
        return receipt.id
    return null
  }

  const queue = async (): Promise<void> => {
    // Nothing was ever signed outside: a storm of denials costs nothing.
    if (book.isEmpty()) return denials.clear()
    if (!lookedAtAll) await lookAtAll()
    for (const [key, one] of denials) {
      if (stopped.signal.aborted) return
      if (!isRefusal(await queueOf(one)) && denials.get(key) === one) denials.delete(key)
    }
  }
  const queueOf = ({ denial, receipt }: Denied) =>
    commitDecision(core, async () => {
      const outsideOnes: DeniedOutside[] = []
      for (const certificate of await deniedBy(store, denial)) {
        if (book.find(certificate.issuer) === null) continue
        const order = await store.get('order', certificate.order)
        if (order === null) continue
        const { issuer } = order.value
        const there = await store.get('issuer-revocation', issuerRevocationKey({ issuer, serial: certificate.serial }))
        if (there === null) outsideOnes.push({ certificate, issuer })
      }
      return queueRevocations(denial, outsideOnes, receipt, clock.nowMs()) ?? { kind: 'nothing' as const }
    })

  const send = async (row: Row<IssuerRevocation>): Promise<void> => {
    const { issuer, serial, reason, untilMs } = row.value
    const key = issuerRevocationKey(row.value)
    if (untilMs <= clock.nowMs()) {
      await commitOnce(core, revocationGivenUp(row, clock.nowMs()).change)
      return void failures.delete(key)
    }
    const later = (why: unknown, afterMs = 0): void => {
      const times = (failures.get(key)?.times ?? 0) + 1
      const waitMs = Math.max(afterMs, doublingWaitMs(times - 1, firstWaitMs, longestWaitMs))
      failures.set(key, { times, nextMs: clock.monotonicMs() + waitMs })
      log.info({ issuer, serial, err: why }, 'a certificate could not be revoked at its issuer yet')
    }
    try {
      const outcome = await outside.revoke(issuer, serial, reason, stopped.signal)
      if (isRefusal(outcome)) return later(outcome.detail, outcome.retryAfterMs ?? 0)
      await commitOnce(core, revocationDone(row, outcome, clock.nowMs()).change)
      failures.delete(key)
    } catch (error) {
      if (error instanceof AnotherSerial && !failures.has(key)) await misanswered(row, error)
      later(error)
    }
  }
  /** Said once by each leader, and not with each try. */
  const misanswered = async (row: Row<IssuerRevocation>, { message }: AnotherSerial): Promise<void> => {
    await commitOnce(core, revocationMisanswered(row, message, clock.nowMs()).change)
    const issuer = known.all().find(({ id }) => id === row.value.issuer)?.name ?? row.value.issuer
    const why = `asked to revoke, ${message}`
    await raiseAlert(core, wantedAlert('issuer_violation', issuer, { issuer, why }))
  }

  const sendDue = async (issuer: string): Promise<void> => {
    const under = sending.get(issuer) ?? new Set<string>()
    sending.set(issuer, under)
    let looked = 0
    const pages = rowPages(store, 'issuer-revocation', placeOf, { where: { issuer }, order: 'due', limit: 100 })
    for await (const page of pages) {
      for (const row of page) {
        const key = issuerRevocationKey(row.value)
        const waits = (failures.get(key)?.nextMs ?? -Infinity) > clock.monotonicMs()
        if (under.has(key) || waits) continue
        if (under.size >= atOnce || stopped.signal.aborted) return
        under.add(key)
        void send(row)
          .catch((error: unknown) => log.warn({ err: error, issuer }, 'the outbox of an issuer failed'))
          .finally(() => under.delete(key))
      }
      looked += page.length
      if (looked >= mostLookedAt) return
    }
  }

  const endUpkeep = startUpkeep(core, [
    { name: 'issuer outbox', where: 'leader', everyMs: 1000, run: queue },
    {
      name: 'revocations at issuers',
      where: 'leader',
      everyMs: 1000,
      run: async () => {
        for (const { id, forged } of known.all()) if (forged !== true) await sendDue(id)
      },
    },
  ])
  return {
    stop() {
      endUpkeep()
      unsubscribe()
      stopped.abort()
    },
  }
}

/** As receipts name whom they are about. */
const holderIn = (certificate: CertificateRow | undefined): string | null => {
  const subject = certificate?.subject
  if (subject === undefined || subject.kind === 'server') return null
  return subject.kind === 'worker' ? certificateHolder(subject) : subject.node
}

const placeOf = (row: IssuerRevocation): string => revocationPlace(row) ?? ''

/** The certificates that it ends, where it names them. What a withdrawn authority has signed is for those who run it. */
const deniedBy = async (
  store: Pick<Core['store'], 'get' | 'list'>,
  denial: Denial,
): Promise<readonly CertificateRow[]> => {
  switch (denial.kind) {
    case 'issuer':
      return []
    case 'certificate':
      return [await store.get('certificate', certificateKey(denial.issuer, denial.serial))].flatMap((row) =>
        row === null ? [] : [row.value],
      )
    case 'epoch': {
      const found: CertificateRow[] = []
      for (const node of [denial.node, programsHolder(denial.node)])
        for await (const row of everyRow(store, 'certificate', ({ issuer, serial }) => certificateKey(issuer, serial), {
          where: { node },
        }))
          if (isOfEpoch(row, denial.epoch)) found.push(row)
      return found
    }
  }
}

const isOfEpoch = ({ subject }: CertificateRow, epoch: number): boolean =>
  (subject.kind === 'node' || subject.kind === 'program') && subject.epoch === epoch
