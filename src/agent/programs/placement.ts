// Puts what the agent has for each output in place on this host, has its program read it, and takes away what is wanted no more.
// One thing at a time, except that nothing waits for a reload to be taken away; what fails is tried again, and leaves what was there
// before.

import type { AgentCore, AgentParts } from '#agent/core/agent-parts.ts'
import { tidy, type Trouble } from '#agent/core/trouble.ts'
import { isoTime } from '#platform/clock.ts'
import { mountPointOf } from '#platform/paths.ts'
import type { ConfigOutput } from '#wire/programs/programs-api.ts'
import { buildGeneration, remembered, type Built } from './build-generation.ts'
import { longestFailure, longestRetryMs, openEfforts } from './efforts.ts'
import { withoutOutput, type LeafStore, type ProgramLeaf } from './leaf-store.ts'
import type { KnownList, ListStore, PlacedOutput } from './list-store.ts'
import type { OutputState } from './output-reporter.ts'
import { pathOf, samePlace, type NodeOfPrograms, type Place, type Publisher } from './publisher.ts'
import { openSearch } from './search-placed.ts'
import { leafDueAtMs } from './wanted-outputs.ts'

export type Placement = {
  /** Compares what is in place with what is wanted, and does what differs. */
  look(): void
  /** How an output stands. `trouble`: what the plane said when it was last asked for a leaf; null: nothing is wrong. */
  stateOf(output: ConfigOutput, trouble: Trouble | null): OutputState
  /** Outputs besides these whose files could not be removed. */
  leftovers(wanted: readonly ConfigOutput[]): readonly OutputState[]
  /** Resolves when everything that was begun has ended. */
  settled(): Promise<void>
  /** Everything in place is to be removed, now or later, also by an agent after this one. Tried once when it resolves. */
  withdraw(): Promise<void>
  /** Whether something is in place that was withdrawn, and that may be removed yet. */
  isWithdrawing(): boolean
  close(): Promise<void>
}

type PlacementParts = {
  readonly leaves: LeafStore
  readonly lists: ListStore
  readonly record: Pick<AgentParts['record'], 'changed'>
  readonly publisher: Publisher
  /** Null: this machine is no node yet. */
  readonly nodeNow: () => NodeOfPrograms | null
  /** Null: it is not known, and nothing is taken away. */
  readonly outputs: () => readonly ConfigOutput[] | null
}

type InPlace = { readonly mark: string; readonly serial: string; readonly place: Place; readonly isDurable: boolean }

/** After a reload has returned. */
const readWithinMs = 5_000

type Pems = readonly string[]
/** With whether the leaf has expired, which alone depends on the time. */
type KnownParts = readonly [roots: Pems, outside: Pems, between: Pems, lists: readonly KnownList[], isExpired: boolean]

/** `changed`: called after each look, when how an output stands may be different. */
export const openPlacement = (
  core: AgentCore,
  { leaves, lists, record, publisher, nodeNow, outputs }: PlacementParts,
  changed: () => void,
): Placement => {
  const { clock, log } = core
  const inPlace = new Map<string, InPlace>()
  const puts = openEfforts(core, record)
  const reloads = openEfforts(core, record)
  /** By path. */
  const removals = openEfforts(core, record)
  const reloadedAtMs = new Map<string, number>()
  let busy: Promise<void> = Promise.resolve()
  /** Null: none is under way. */
  let reloading: Promise<void> | null = null
  let isWaiting = false
  let isOver = false
  /** The ledger could not be read when everything in it was withdrawn. */
  let withdrawsLater = false

  const leafOf = (output: string): ProgramLeaf | null =>
    leaves.current().leaves.find((leaf) => leaf.output === output) ?? null
  const serialOf = (output: string): string | null => leafOf(output)?.serial ?? null
  const search = openSearch(core, { lists, record, publisher, nodeNow, serialOf })
  const builders = new Map<string, (output: ConfigOutput, leaf: ProgramLeaf, ...known: KnownParts) => Built>()
  const builderOf = (name: string) => {
    const builder = builders.get(name) ?? remembered(buildNow)
    builders.set(name, builder)
    return builder
  }
  const buildNow = (
    output: ConfigOutput,
    leaf: ProgramLeaf,
    ...[roots, outsideRoots, authorities, known]: KnownParts
  ): Built => buildGeneration(output, leaf, { roots, outsideRoots, authorities, lists: known }, clock.nowMs())
  const built = (output: ConfigOutput): Built => {
    const leaf = leafOf(output.name)
    if (leaf === null) return { kind: 'missing', why: 'it has no leaf yet' }
    const { roots, authorities } = lists.current()
    const isExpired = clock.nowMs() >= leaf.notAfterMs
    return builderOf(output.name)(output, leaf, roots, lists.outsideRoots(), authorities, lists.lists(), isExpired)
  }
  const placedOf = (name: string): readonly PlacedOutput[] =>
    lists.current().placed.filter(({ output }) => output === name)
  /** First: should the agent end while it writes, the next one knows what to take away. */
  const note = (output: string, place: Place): void => {
    const mount = place.by === 'agent' ? mountPointOf(place.directory) : undefined
    const noted = placedOf(output).find((placed) => samePlace(placed, place) && placed.by === place.by)
    if (noted !== undefined && noted.mount === mount) return
    // Both are above the directory: the longer one was mounted then, and is not now.
    if (noted?.mount !== undefined && mount !== undefined && noted.mount.length > mount.length)
      throw new Error(
        `No key is written in ${place.directory}: ${noted.mount} is not mounted. Mount it, or use another --publish DIR`,
      )
    const before = lists.current().placed
    const others = before.filter((placed) => placed.output !== output || !samePlace(placed, place))
    const next = { output, ...place, ...(mount !== undefined && { mount }), withdrawn: false }
    const kept = lists.keep({ placed: [...others, next] })
    if (kept.persisted) return
    lists.keep({ placed: before })
    throw new Error(`Where its files are cannot be noted in the state folder: ${kept.detail}`)
  }

  const put = async (output: ConfigOutput): Promise<void> => {
    const { name } = output
    const next = built(output)
    const place = publisher.placeOf(output)
    if (next.kind === 'missing' || place.by === 'nobody' || !puts.mayTry(name)) return
    const now = inPlace.get(name)
    if (now?.mark === next.mark && samePlace(now.place, place) && now.isDurable) return
    // Else the key of a revoked node would stay beside the new one, as the generation before.
    if (placedOf(name).some((placed) => placed.withdrawn && samePlace(placed, place))) return
    const serial = serialOf(name) ?? ''
    const isPut = await puts.attempt(name, async () => {
      note(name, place)
      const isDurable = (await publisher.publish(next.generation, place)) === 'durable'
      inPlace.set(name, { mark: next.mark, serial, place, isDurable })
      if (mayBeReading(output)) readAgain(name)
      if (!isDurable) throw new Error(`${pathOf(name, place)} is in place, but its disk has not confirmed that`)
    })
    if (!isPut || (now?.serial === serial && samePlace(now.place, place))) return
    log.info({ output: name, serial, place: pathOf(name, place) }, 'an output is in place')
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
      const now = inPlace.get(output.name)
      if (reload === null || next.kind === 'missing' || now?.mark !== next.mark) continue
      const loaded = lists.current().reloaded[output.name]
      if (loaded?.mark === loadMarkOf(next, now) && clock.nowMs() < loaded.againAtMs) continue
      found.set(reload, [...(found.get(reload) ?? []), output])
    }
    return found
  }
  const reload = async (name: string, wanted: readonly ConfigOutput[]): Promise<void> => {
    // As they are now: what is put in place while the reload runs is not known to be read by it.
    const loaded = wanted.flatMap((output) => {
      const next = built(output)
      const now = inPlace.get(output.name)
      if (next.kind === 'missing' || now === undefined) return []
      // Lists that are past their half themselves are no reason to reload in a circle.
      const againAtMs = next.loadAgainAtMs > clock.nowMs() ? next.loadAgainAtMs : clock.nowMs() + longestRetryMs
      return [[output.name, { mark: loadMarkOf(next, now), againAtMs }] as const]
    })
    if (!(await reloads.attempt(name, () => publisher.reload(name)))) return
    reloadedAtMs.set(name, clock.monotonicMs())
    // Without those that were taken away meanwhile.
    const stillThere = loaded.filter(([output]) => inPlace.has(output))
    lists.keep({ reloaded: { ...lists.current().reloaded, ...Object.fromEntries(stillThere) } })
    log.info({ reload: name, outputs: wanted.map((output) => output.name) }, 'programs have read their outputs')
  }

  /** What is wanted no more, and what is where it is no longer wanted: that once it is in place elsewhere. */
  const unwanted = (wanted: readonly ConfigOutput[] | null): readonly PlacedOutput[] =>
    lists.current().placed.filter((placed) => {
      if (placed.withdrawn) return true
      if (wanted === null) return false
      const output = wanted.find(({ name }) => name === placed.output)
      if (output === undefined) return true
      const now = inPlace.get(placed.output)
      const place = publisher.placeOf(output)
      const belongsThere = place.by !== 'nobody' && samePlace(place, placed)
      // Not before its program has been signalled to read what is in the new place.
      return reloading === null && !belongsThere && now?.isDurable === true && !samePlace(now.place, placed)
    })
  const takeAway = async (placed: PlacedOutput): Promise<void> => {
    const { output } = placed
    const place = pathOf(output, placed)
    if (!removals.mayTry(place)) return
    if (!(await removals.attempt(place, () => publisher.remove(output, placed)))) return
    const now = inPlace.get(output)
    if (now !== undefined && samePlace(now.place, placed)) inPlace.delete(output)
    // As it is now: it may have been marked as withdrawn meanwhile.
    const left = lists.current().placed.filter((other) => other.output !== output || !samePlace(other, placed))
    lists.keep({ placed: left })
    if (left.every((other) => other.output !== output)) readAgain(output)
    log.info({ output, place }, 'an output was removed')
    record.changed('programs', 'removed', `Output ${output}: its files in ${placed.directory} were removed.`)
  }

  const withdrawAll = (): void => {
    withdrawsLater = lists.isUnread()
    lists.keep({ placed: lists.current().placed.map((placed) => ({ ...placed, withdrawn: true })) })
  }

  const settle = async (): Promise<void> => {
    if (withdrawsLater && !lists.isUnread()) withdrawAll()
    await search.look()
    const wanted = outputs()
    for (const placed of unwanted(wanted)) if (!isOver) await takeAway(placed)
    if (wanted === null) return
    for (const { output } of leaves.current().leaves)
      if (!wanted.some(({ name }) => name === output)) leaves.keep(withoutOutput(leaves.current(), output))
    // A program must not meet files of two generations while it reads them: the next look puts them in place.
    if (reloading === null) {
      for (const output of wanted) if (!isOver) await put(output)
      beginReloads(unread(wanted))
    }
    changed()
  }
  /** Not waited for: a reload may take minutes, and what was withdrawn meanwhile is removed at once. */
  const beginReloads = (all: ReadonlyMap<string, readonly ConfigOutput[]>): void => {
    const due = [...all].filter(([name]) => reloads.mayTry(name))
    if (due.length === 0 || isOver) return
    const run = async (): Promise<void> => {
      for (const [name, of] of due) if (!isOver) await reload(name, of)
    }
    reloading = run()
      .catch((error: unknown) => log.error({ err: error }, 'programs could not be reloaded'))
      .finally(() => {
        reloading = null
        changed()
      })
  }
  const settled = async (): Promise<void> => {
    await busy
    await reloading
  }

  /** What of an output is on the host and should not be, or is not kept up to date there; `place`: where it belongs; null: nowhere. */
  const stayingOf = (name: string, place: Place | null): string | null => {
    const staying = placedOf(name).find((placed) => place === null || placed.withdrawn || !samePlace(placed, place))
    if (staying === undefined) return null
    const failure = removals.failureOf(pathOf(name, staying))
    if (failure !== null) return failure
    return place === null ? `Its files of before stay in ${staying.directory}` : null
  }
  const failureOf = (output: ConfigOutput, next: Built, trouble: Trouble | null): string | null => {
    const place = publisher.placeOf(output)
    if (place.by === 'nobody') {
      const staying = stayingOf(output.name, null)
      return staying === null ? place.why : `${staying}. ${place.why}`
    }
    const failure = puts.failureOf(output.name)
    if (failure !== null) return failure
    const reloading = output.files.reload === null ? null : reloads.failureOf(output.files.reload)
    if (reloading !== null) return reloading
    if (trouble !== null) return `${trouble.code}: ${trouble.text}`
    if (next.kind === 'missing' && leafOf(output.name) !== null) return next.why
    return stayingOf(output.name, place)
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
      const place = publisher.placeOf(output)
      const until = lists.lists().map(({ nextUpdateMs }) => nextUpdateMs)
      return {
        name: output.name,
        place: place.by === 'nobody' ? null : pathOf(output.name, place),
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
    leftovers: (wanted) => {
      const left = lists.current().placed.filter(({ output }) => !wanted.some(({ name }) => name === output))
      return left.flatMap((placed) => {
        const failure = removals.failureOf(pathOf(placed.output, placed))
        return failure === null
          ? []
          : [{ ...nothing, name: placed.output, place: pathOf(placed.output, placed), failure }]
      })
    },
    settled,
    withdraw: async () => {
      withdrawAll()
      removals.forget()
      search.forget()
      busy = busy.then(async () => {
        await search.look()
        for (const placed of lists.current().placed) await takeAway(placed)
      })
      await busy
    },
    isWithdrawing: () =>
      withdrawsLater ||
      search.isUnderWay() ||
      lists.current().placed.some((placed) => placed.withdrawn && !removals.isUpToOwner(pathOf(placed.output, placed))),
    close: async () => {
      isOver = true
      await settled()
    },
  }
}

/** A program that is to read its files elsewhere has read nothing of what is there. */
const loadMarkOf = ({ loadMark }: Pick<Built & { kind: 'built' }, 'loadMark'>, { place }: InPlace): string =>
  `${loadMark} ${place.directory}`

/** The state of an output without a leaf. */
const nothing = {
  serial: null,
  not_after: null,
  renew_at: null,
  lists_until: null,
  key_type: '-',
  names: [],
  reload: null,
} as const satisfies Partial<OutputState>
