// `muster journal list`: the newest entries, or those of a span of time.

import { isoTime, parseIsoTime } from '#platform/clock.ts'
import { parseDuration } from '#wire/core/duration.ts'
import type { Cli } from '#cli/kit/cli.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { Failure, usageFailure } from '#cli/kit/failure.ts'
import { showList, type ListOptions } from '#cli/kit/list.ts'
import { connect, eachPage } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { askJournal, countOption } from './ask-journal.ts'
import { entryColumns, type Entry } from './journal-lines.ts'

type JournalListOptions = ListOptions & {
  readonly node?: string
  readonly type?: string
  readonly last: string
  readonly since?: string
  readonly until?: string
  readonly actor?: string
  readonly correlation?: string
}

const dayMs = 24 * 3_600_000

export const journalList = async (cli: Cli, options: JournalListOptions): Promise<void> => {
  const last = countOption(options.last)
  const { since, until, actor, correlation } = options
  const isSpan = (since ?? until ?? actor ?? correlation) !== undefined
  const page = isSpan ? await spanOf(cli, options, last) : await askJournal(connect(cli, options), options, { last })
  showList(cli, options, {
    items: page.entries,
    columns: entryColumns(options.output === 'wide'),
    body: (entries) => ({ ...page, entries }),
  })
  if (page.entries.length > 0) return
  printer(cli, options).note('no entries match')
  // Nothing else narrows it but the time: there is no such story in it.
  const isAlone = (options.node ?? options.type ?? actor) === undefined
  if (correlation !== undefined && isAlone) throw noSuchStory(correlation, since)
}

/** The newest that match: pages are read from the beginning of the span to its end. */
const spanOf = async (cli: Cli, options: JournalListOptions, last: number) => {
  const nowMs = cli.clock.nowMs()
  const untilMs = options.until === undefined ? null : timeOption('--until', options.until, nowMs)
  const sinceMs = options.since === undefined ? (untilMs ?? nowMs) - dayMs : timeOption('--since', options.since, nowMs)
  const span = {
    since: isoTime(sinceMs),
    ...(untilMs === null ? {} : { until: isoTime(untilMs) }),
    ...(options.actor === undefined ? {} : { actor: options.actor }),
    ...(options.correlation === undefined ? {} : { correlation: options.correlation }),
  }
  const plane = connect(cli, options)
  let entries: readonly Entry[] = []
  let found = 0
  let next: string | null = null
  const pages = eachPage((after) => askJournal(plane, options, { ...span, after, limit: 1000 }).catch(mindOlder))
  for await (const page of pages) {
    found += page.entries.length
    entries = [...entries, ...page.entries].slice(-last)
    next = page.next ?? next
  }
  if (found > last) printer(cli, options).note(`the last ${last} of ${found} entries; more: --last 1000`)
  return { entries, next }
}

/** The journal has no index of correlations. All of the span has been read by then. */
const noSuchStory = (correlation: string, since: string | undefined): Failure =>
  new Failure({
    exit: exitCodes.notFound,
    code: 'CORRELATION_NOT_FOUND',
    sentence: `No entry ${since === undefined ? 'of the last day' : 'of that time'} has the correlation ${correlation}.`,
    detail: null,
    next: 'Go back further: muster journal list --since 30d --correlation ID',
  })

const timeOption = (option: string, text: string, nowMs: number): number => {
  const agoMs = parseDuration(text)
  const ms = agoMs === null ? parseIsoTime(text) : nowMs - agoMs
  if (ms === null)
    throw usageFailure(`${option} ${text} is not a time.`, 'Write 2h for two hours ago, or 2026-01-05T08:00:00Z')
  return ms
}

/** A plane of the release before refuses what it does not know. */
const mindOlder = (error: unknown): never => {
  if (!(error instanceof Failure) || error.code !== 'REQUEST_INVALID') throw error
  const { exit, code, message, detail } = error
  const next =
    '--since, --until and --actor need a plane of 0.5, --correlation one of 0.6: compare muster version, here and on the plane'
  throw new Failure({ exit, code, detail, sentence: message, next })
}
