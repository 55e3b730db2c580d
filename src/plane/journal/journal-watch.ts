// The journal verified, and rows compared with it: when an operator asks, and in the background by the replica that leads,
// after it starts and then daily. What is wrong raises critical alerts, and rows that let in what the journal shuts out are
// fenced.

import type { Alert } from '#domain/alerts/alert.ts'
import { revokedAgain, wantedAlert, type AlertKind, type WantedAlert } from '#domain/alerts/alert-kinds.ts'
import { boundedText } from '#domain/core/change.ts'
import { sleep, turn } from '#platform/timers.ts'
import { compareRows, type Comparison, type RowDifference } from './compare-rows.ts'
import { fenceRow } from './fence-rows.ts'
import { restWhileBusy } from './rest-while-busy.ts'
import { reconcileSource, type UnresolvedAlerts } from '#plane/alerts/reconcile-alerts.ts'
import { StoreFault } from '#plane/store/contract/store-errors.ts'
import type { Store, Verification } from '#plane/store/contract/store.ts'
import type { Core } from '#plane/core/core.ts'

export type JournalWatchParts = {
  readonly alerts: Pick<UnresolvedAlerts, 'all'>
  /** The rows of operator keys, which are judged by their MACs. */
  readonly keyBook: { lookAtAll(): Promise<void> }
  readonly domainName: () => string
  /** The share of the time since its last call in which the event loop had work. */
  readonly loopLoad: () => number
}

export type Verified = {
  readonly journal: Verification
  readonly rows: Comparison
  readonly startedAtMs: number
  readonly finishedAtMs: number
}

export type JournalWatch = {
  /** For an operator. One at a time: a caller who asks meanwhile gets the result that is on its way. */
  verify(): Promise<Verified>
  /** The newest result of this process, for any caller. */
  last(): Verified | null
  /** In the background, for as long as this replica leads. */
  lead(): { stop(): Promise<void> }
}

const dayMs = 24 * 3_600_000
const startAfterMs = 2000
const lookEveryMs = 60_000
/** A commit that is under way has ended by then. */
const againMs = 500
const mostAlerts = 20
const stopWithinMs = 2000

export const openJournalWatch = (core: Core, parts: JournalWatchParts): JournalWatch => {
  const { store, clock, timers, log } = core
  const { keyBook } = parts
  let last: Verified | null = null
  let asked: Promise<Verified> | null = null

  const run = async (rest: () => Promise<void>, again: () => Promise<void>): Promise<Verified> => {
    const startedAtMs = clock.nowMs()
    const journal = await store.journal.verify({ rest })
    const fence = (difference: RowDifference): Promise<void> => fenceRow(core, difference)
    const rows = await compareRows(core, { rest, again, fence })
    return { journal, rows, startedAtMs, finishedAtMs: clock.nowMs() }
  }
  /** Throws the first fault, when everything was tried. */
  const follow = async (done: Verified): Promise<void> => {
    const { journal, rows } = done
    const faults: unknown[] = rows.fault === null ? [] : [rows.fault]
    const attempt = (step: Promise<void>): Promise<void> => step.catch((error: unknown) => void faults.push(error))
    await attempt(tell(core, parts, journal, rows))
    await attempt(keyBook.lookAtAll())
    last = done
    if (faults.length > 0) throw faults[0]
  }
  /**
   * A store that is in doubt or has no room takes no alert and no fence. The operator who asks gets the result all the same:
   * then it is needed most.
   */
  const verifyForOperator = async (): Promise<Verified> => {
    const done = await run(
      () => turn(timers),
      () => sleep(timers, againMs),
    )
    await follow(done).catch((error: unknown) => {
      if (!(error instanceof StoreFault)) throw error
      log.error({ err: error }, 'what the verification found could not all be fenced, or raise its alerts')
    })
    return done
  }

  return {
    verify: () =>
      (asked ??= verifyForOperator().finally(() => {
        asked = null
      })),
    last: () => last,
    lead() {
      let stopped = false
      let running: Promise<unknown> = Promise.resolve()
      let nextMs = clock.nowMs()
      const background = async (): Promise<void> => {
        // Ended between two slices when this replica stops or no longer leads.
        const pause = async (ms: number): Promise<void> => {
          await sleep(timers, ms)
          if (stopped) throw new Stopped()
        }
        await checkFile(core, parts)
        if (stopped) return
        const done = await run(
          () => restWhileBusy(pause, parts.loopLoad),
          () => pause(againMs),
        )
        await follow(done)
        const { journal, rows } = done
        const counts = { entries: journal.entries, nodes: rows.nodes, differences: rows.differences.length }
        log.info({ journal: journal.kind, ...counts }, 'the journal was verified and compared with the rows')
      }
      const look = (): void => {
        // A clock that was set back must not put the next run off.
        if (stopped || (clock.nowMs() < nextMs && nextMs - clock.nowMs() <= dayMs)) return
        nextMs = clock.nowMs() + dayMs
        running = background().catch((error: unknown) => {
          if (error instanceof Stopped) return
          nextMs = clock.nowMs() + lookEveryMs
          log.error({ err: error }, 'the journal could not be verified in the background')
        })
      }
      const first = timers.after(startAfterMs, look, 'background')
      const each = timers.every(lookEveryMs, look)
      return {
        async stop() {
          stopped = true
          first()
          each()
          // It ends at its next slice. A slow disk must not hold up the end of the plane.
          await Promise.race([running, sleep(timers, stopWithinMs, 'background')])
        },
      }
    },
  }
}

class Stopped extends Error {}

const checkFile = async (core: Core, { alerts, domainName }: JournalWatchParts): Promise<void> => {
  const fault = await core.store.fileFault()
  if (fault !== null) core.log.error({ fault }, 'the database file is damaged')
  const wanted = fault === null ? [] : [wantedAlert('store_damaged', domainName(), { fault })]
  await reconcileSource(core, alerts, { kinds: ['store_damaged'], wanted: () => wanted })
}

const tell = async (
  core: Core,
  { alerts, domainName }: JournalWatchParts,
  journal: Verification,
  rows: Comparison,
): Promise<void> => {
  const damaged = journal.kind === 'intact' ? [] : [wantedAlert('journal_damaged', domainName(), journal)]
  const differing = differingRows(domainName(), rows)
  const wanted = [...damaged, ...differing.map(({ alert }) => alert)]
  for (const { subject, reason } of wanted)
    core.log.error({ subject, reason }, 'the journal and the rows of the store do not agree')
  await reconcileSource(core, alerts, { kinds: ['journal_damaged'], wanted: () => damaged })
  await reconcileSource(core, alerts, {
    kinds: ['rows_differ'],
    wanted: () => differing.map(({ alert }) => alert),
    extend: (alert, unresolved) => {
      const parts = differing.find((one) => one.alert === alert)?.parts ?? []
      return withEarlier(alert, parts, unresolved, core.clock.nowMs())
    },
    // The fence itself makes rows and journal agree: it is over when the node has left its quarantine.
    async over(unwanted) {
      const isFenced = await Promise.all(unwanted.map(({ node }) => isQuarantined(core.store, node)))
      return unwanted.filter((_, at) => !isFenced[at])
    },
  })
}

const isQuarantined = async (store: Pick<Store, 'get'>, node: Alert['node']): Promise<boolean> =>
  node !== null && (await store.get('node', node))?.value.membership.kind === 'quarantined'

type Differing = { readonly alert: WantedAlert; readonly parts: readonly string[] }

const differingRows = (domainName: string, { differences }: Comparison): readonly Differing[] => {
  const bySubject = Map.groupBy(differences, ({ subject }) => subject)
  const named = [...bySubject].slice(0, mostAlerts)
  const unnamed = bySubject.size - named.length
  const rest = `${unnamed} and more rows besides those with alerts of their own differ from the journal: muster journal verify`
  return [
    ...named.map(([subject, ofSubject]) => {
      const parts = ofSubject.map(differenceInWords).slice(0, mostParts)
      const alert = wantedAlert('rows_differ', subject, parts.join('; '), { node: ofSubject[0]?.node ?? null })
      return { alert, parts }
    }),
    ...(unnamed === 0 ? [] : [{ alert: wantedAlert('rows_differ', domainName, rest), parts: [] }]),
  ]
}

const mostParts = 2

/** The longest text of a difference: two of them fit a reason. */
const differenceInWords = ({ row, subject, why, fence }: RowDifference): string => {
  const words = boundedText(`${row} ${subject}: ${why}`)
  if (fence === null) return words
  if (fence.kind === 'quarantine' && fence.revokedBefore !== null)
    return boundedText(`${words}${revokedAgain(subject, fence.revokedBefore)}`, 380)
  return `${words}; it is shut out until an operator has looked`
}

/**
 * A fence makes rows and journal agree, so only the alert still names the difference: a new difference is added to its reason, and
 * the alert loses its acknowledgement.
 */
const withEarlier = (wanted: WantedAlert, parts: readonly string[], unresolved: Alert, nowMs: number): WantedAlert => {
  if (parts.every((part) => unresolved.reason.includes(part))) return wanted
  const earlier = `earlier: ${unresolved.reason.replace(/^earlier: /, '')}`
  return { ...wanted, reason: `${wanted.reason}; ${earlier}`, sinceMs: Math.max(nowMs, unresolved.sinceMs + 1) }
}

/** For `/readyz`, which is public: only where to look. */
export const damageInWords = (alerts: Pick<UnresolvedAlerts, 'all'>): readonly string[] => {
  const count = (wanted: AlertKind): number => [...alerts.all()].filter(({ kind }) => kind === wanted).length
  const differ = count('rows_differ')
  const forged = count('operator_key_forged')
  return [
    ...(count('journal_damaged') > 0 ? ['the journal is damaged: muster journal verify'] : []),
    ...(count('store_damaged') > 0 ? ['the database file is damaged: muster alert list'] : []),
    ...(differ > 0 ? [`rows differ from the journal (${differ}): muster alert list`] : []),
    ...(forged > 0 ? [`operator keys that no plane wrote are in the database (${forged}): muster alert list`] : []),
  ]
}
