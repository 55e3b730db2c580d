// Puts what the agent has for each output in place on this host, has its program read it, and takes away what is wanted no more.
// One thing at a time; what fails is tried again, and leaves what was there before.

import type { AgentCore, AgentParts } from '#agent/core/agent-parts.ts'
import { fullJitterMs } from '#agent/core/backoff.ts'
import { tidy, type Trouble } from '#agent/core/trouble.ts'
import { isoTime } from '#platform/clock.ts'
import type { ConfigOutput } from '#wire/programs/programs-api.ts'
import { remembered } from './remembered.ts'
import { buildGeneration, type Built } from './build-generation.ts'
import { withoutOutput, type LeafStore, type ProgramLeaf } from './leaf-store.ts'
import type { KnownList, ListStore } from './list-store.ts'
import type { OutputState } from './output-reporter.ts'
import type { Publisher } from './publisher.ts'
import { leafDueAtMs } from './wanted-outputs.ts'

export type Placement = {
  /** Compares what is in place with what is wanted, and does what differs. */
  look(): void
  /** How an output stands. `trouble`: what the plane said when it was last asked for a leaf; null: nothing is wrong. */
  stateOf(output: ConfigOutput, trouble: Trouble | null): OutputState
  /** Resolves when everything that was begun has ended. */
  settled(): Promise<void>
  removeAll(): Promise<void>
  close(): Promise<void>
}

type PlacementParts = {
  readonly leaves: LeafStore
  readonly lists: ListStore
  readonly record: Pick<AgentParts['record'], 'changed'>
  readonly publisher: Publisher
  /** Null: it is not known, and nothing is taken away. */
  readonly outputs: () => readonly ConfigOutput[] | null
}

/** What was done for an output, or a reload, and when it may be tried again. */
type Effort = { readonly failure: string | null; readonly failures: number; readonly notBeforeMs: number }
const noEffort: Effort = { failure: null, failures: 0, notBeforeMs: -Infinity }

type InPlace = { readonly mark: string; readonly serial: string }

const firstRetryMs = 2_000
const longestRetryMs = 300_000
const longestFailure = 256
/** After a reload has returned. */
const readWithinMs = 5_000

/** With whether the leaf has expired, which alone depends on the time. */
type KnownParts = readonly [
  roots: readonly string[],
  authorities: readonly string[],
  lists: readonly KnownList[],
  isExpired: boolean,
]

const noPlace =
  'This host has no place for it: start the agent with --publish DIR, or have the helper allow it in /etc/muster/agent.toml'

/** `changed`: called after each look, when how an output stands may be different. */
export const openPlacement = (
  { clock, random, log }: AgentCore,
  { leaves, lists, record, publisher, outputs }: PlacementParts,
  changed: () => void,
): Placement => {
  const inPlace = new Map<string, InPlace>()
  const efforts = new Map<string, Effort>()
  const reloads = new Map<string, Effort>()
  const reloadedAtMs = new Map<string, number>()
  let busy: Promise<void> = Promise.resolve()
  let isWaiting = false
  let isOver = false

  const leafOf = (output: string): ProgramLeaf | null =>
    leaves.current().leaves.find((leaf) => leaf.output === output) ?? null
  const builders = new Map<string, (output: ConfigOutput, leaf: ProgramLeaf, ...known: KnownParts) => Built>()
  const builderOf = (name: string) => {
    const builder = builders.get(name) ?? remembered(buildNow)
    builders.set(name, builder)
    return builder
  }
  const buildNow = (output: ConfigOutput, leaf: ProgramLeaf, ...[roots, authorities, known]: KnownParts): Built =>
    buildGeneration(output, leaf, { roots, authorities, lists: known }, clock.nowMs())
  const built = (output: ConfigOutput): Built => {
    const leaf = leafOf(output.name)
    if (leaf === null) return { kind: 'missing', why: 'it has no leaf yet' }
    const { roots, authorities } = lists.current()
    const isExpired = clock.nowMs() >= leaf.notAfterMs
    return builderOf(output.name)(output, leaf, roots, authorities, lists.lists(), isExpired)
  }
  const mayTry = (efforts: ReadonlyMap<string, Effort>, name: string): boolean =>
    clock.monotonicMs() >= (efforts.get(name) ?? noEffort).notBeforeMs
  const attempted = async (efforts: Map<string, Effort>, name: string, act: () => Promise<void>): Promise<boolean> => {
    const before = efforts.get(name) ?? noEffort
    try {
      await act()
      efforts.delete(name)
      return true
    } catch (error) {
      const failure = tidy(error instanceof Error ? error.message : String(error), longestFailure)
      const delayMs = firstRetryMs + fullJitterMs(before.failures, firstRetryMs, longestRetryMs, random.unit())
      const notBeforeMs = clock.monotonicMs() + delayMs
      efforts.set(name, { failure, failures: before.failures + 1, notBeforeMs })
      log.warn({ what: name, failure, waitMs: Math.round(delayMs) }, 'an output is not as it should be')
      if (failure !== before.failure) record.changed('programs', 'output_failed', `${name}: ${failure}`)
      return false
    }
  }

  const put = async (output: ConfigOutput): Promise<void> => {
    const { name } = output
    const next = built(output)
    if (next.kind === 'missing' || inPlace.get(name)?.mark === next.mark || !mayTry(efforts, name)) return
    if (publisher.placeOf(output) === null) return
    // Noted first: should the agent end here, the next one knows what to take away.
    if (!lists.current().placed.includes(name)) lists.keep({ placed: [...lists.current().placed, name] })
    const { serial } = leafOf(name) ?? { serial: '' }
    const isNew = inPlace.get(name)?.serial !== serial
    if (!(await attempted(efforts, name, () => publisher.publish(next.generation)))) return
    inPlace.set(name, { mark: next.mark, serial })
    if (mayBeReading(output)) readAgain(name)
    if (!isNew) return
    log.info({ output: name, serial }, 'an output is in place')
    record.changed('programs', 'in_place', `Output ${name}: leaf ${serial} is in place.`)
  }

  /** A reload is a signal to most programs: they read their files after it has returned, and then may have met files of both. */
  const mayBeReading = ({ files: { reload } }: ConfigOutput): boolean =>
    reload !== null && clock.monotonicMs() - (reloadedAtMs.get(reload) ?? -Infinity) < readWithinMs
  const readAgain = (name: string): void => {
    const { [name]: _loaded, ...reloaded } = lists.current().reloaded
    lists.keep({ reloaded })
  }

  /** The outputs whose program has not read what is in place, by the name of their reload. */
  const unread = (wanted: readonly ConfigOutput[]): ReadonlyMap<string, readonly ConfigOutput[]> => {
    const found = new Map<string, ConfigOutput[]>()
    for (const output of wanted) {
      const { reload } = output.files
      const next = built(output)
      if (reload === null || next.kind === 'missing' || inPlace.get(output.name)?.mark !== next.mark) continue
      const loaded = lists.current().reloaded[output.name]
      if (loaded?.mark === next.loadMark && clock.nowMs() < loaded.againAtMs) continue
      found.set(reload, [...(found.get(reload) ?? []), output])
    }
    return found
  }
  const reload = async (name: string, wanted: readonly ConfigOutput[]): Promise<void> => {
    if (!mayTry(reloads, name)) return
    // As they are now: what is put in place while the reload runs is not known to be read by it.
    const loaded = wanted.flatMap((output) => {
      const next = built(output)
      if (next.kind === 'missing') return []
      // Lists that are past their half themselves are no reason to reload in a circle.
      const againAtMs = next.loadAgainAtMs > clock.nowMs() ? next.loadAgainAtMs : clock.nowMs() + longestRetryMs
      return [[output.name, { mark: next.loadMark, againAtMs }] as const]
    })
    if (!(await attempted(reloads, name, () => publisher.reload(name)))) return
    reloadedAtMs.set(name, clock.monotonicMs())
    lists.keep({ reloaded: { ...lists.current().reloaded, ...Object.fromEntries(loaded) } })
    log.info({ reload: name, outputs: wanted.map((output) => output.name) }, 'programs have read their outputs')
  }

  const takeAway = async (name: string): Promise<void> => {
    if (!mayTry(efforts, name) || !(await attempted(efforts, name, () => publisher.remove(name)))) return
    inPlace.delete(name)
    leaves.keep(withoutOutput(leaves.current(), name))
    readAgain(name)
    lists.keep({ placed: lists.current().placed.filter((other) => other !== name) })
    log.info({ output: name }, 'an output was removed')
    record.changed('programs', 'removed', `Output ${name} is wanted no more: its files were removed.`)
  }

  const settle = async (): Promise<void> => {
    const wanted = outputs()
    if (wanted === null) return
    const gone = lists.current().placed.filter((name) => !wanted.some((output) => output.name === name))
    for (const name of gone) await takeAway(name)
    const unwanted = leaves.current().leaves.filter(({ output }) => !wanted.some(({ name }) => name === output))
    for (const { output } of unwanted) if (!gone.includes(output)) leaves.keep(withoutOutput(leaves.current(), output))
    for (const output of wanted) if (!isOver) await put(output)
    for (const [name, of] of unread(wanted)) if (!isOver) await reload(name, of)
    changed()
  }

  const failureOf = (output: ConfigOutput, next: Built, trouble: Trouble | null): string | null => {
    if (publisher.placeOf(output) === null) return noPlace
    const { failure } = efforts.get(output.name) ?? noEffort
    if (failure !== null) return failure
    const reloading = output.files.reload === null ? null : (reloads.get(output.files.reload)?.failure ?? null)
    if (reloading !== null) return reloading
    if (trouble !== null) return `${trouble.code}: ${trouble.text}`
    return next.kind === 'missing' && leafOf(output.name) !== null ? next.why : null
  }

  return {
    look: () => {
      if (isWaiting || isOver) return
      isWaiting = true
      busy = busy.then(async () => {
        isWaiting = false
        try {
          if (!isOver) await settle()
        } catch (error) {
          log.error({ err: error }, 'outputs could not be looked at')
        }
      })
    },
    stateOf: (output, trouble) => {
      const next = built(output)
      const leaf = leafOf(output.name)
      const failure = failureOf(output, next, trouble)
      const until = lists.lists().map(({ nextUpdateMs }) => nextUpdateMs)
      return {
        name: output.name,
        place: publisher.placeOf(output),
        serial: inPlace.get(output.name)?.serial ?? null,
        not_after: leaf === null ? null : isoTime(leaf.notAfterMs),
        renew_at: leaf === null ? null : isoTime(leafDueAtMs(leaf, output.lifetime_ms)),
        lists_until: until.length === 0 ? null : isoTime(Math.min(...until)),
        key_type: output.key_type,
        names: [...output.names],
        reload: output.files.reload,
        failure: failure === null ? null : tidy(failure, longestFailure),
      }
    },
    settled: () => busy,
    removeAll: async () => {
      busy = busy.then(async () => {
        efforts.clear()
        for (const name of lists.current().placed) await takeAway(name)
      })
      await busy
    },
    close: async () => {
      isOver = true
      await busy
    },
  }
}
