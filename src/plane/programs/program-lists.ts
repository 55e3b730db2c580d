// The revocation lists beside the leaves of programs: one for every authority of their chains, the roots included. Made when they
// are requested and kept until something changes; a notice that there are newer ones is sent to connected agents at once.

import type { DomainSettings } from '#domain/core/domain-settings.ts'
import {
  deniedLeafOf,
  isOnProgramList,
  programList,
  programListDueMs,
  type DeniedLeaf,
} from '#domain/programs/program-list.ts'
import type { IssuerId } from '#domain/core/node.ts'
import { wholeSecondMs } from '#pki/der-time.ts'
import { toPem, rootsHash } from '#pki/pem.ts'
import { isoTime } from '#platform/clock.ts'
import type { ProgramsAuthority } from '#plane/authority/programs-authority.ts'
import type { ProgramsListAuthority } from '#plane/authority/programs-issuers.ts'
import type { Core } from '#plane/core/core.ts'
import { everyRow } from '#plane/core/pages.ts'
import { takeTurns } from '#plane/core/turns.ts'
import type { PlaneProgramLists, ProgramLists as ListsAnswer } from '#wire/programs/programs-api.ts'
import { outsideRootsPart } from './issue-program.ts'

export type ProgramLists = {
  lists(): Promise<ListsAnswer>
  /** Called when there are newer lists than those last looked at. */
  onNewer(run: (newer: PlaneProgramLists) => void): void
  /** Periodically: a list becomes due by time as well. */
  settle(): Promise<void>
}

export type ProgramListParts = {
  readonly programs: Pick<ProgramsAuthority, 'listAuthorities' | 'roots' | 'stored'>
  /** Never set ahead by mistake: a list from the future would have to be outlived. */
  readonly steadyMs: () => number
  readonly settings: () => DomainSettings
  /** Of outside issuers, PEM: there are no lists of theirs here. */
  readonly outsideRoots: () => readonly string[]
}

type ListCore = Pick<Core, 'store' | 'feed' | 'clock' | 'timers' | 'log'>

/** A storm of denials does not make a list for each of them. */
const apartMs = 200

export const openProgramLists = (core: ListCore, parts: ProgramListParts): ProgramLists => {
  const { store, feed, clock, timers, log } = core
  const denied = new Map<IssuerId, Map<string, DeniedLeaf>>()
  const listeners: ((newer: PlaneProgramLists) => void)[] = []
  const inTurn = takeTurns()
  let loaded = false
  let changes = 0
  let latestMs = 0
  let made: { readonly stamp: string; readonly answer: ListsAnswer } | null = null
  let announced = ''
  let waiting = false
  let notBeforeMs = -Infinity
  /** Also when the clock is set back: numbers follow from it. */
  const nowMs = (): number => Math.max(latestMs, parts.steadyMs())

  const add = (leaf: NonNullable<ReturnType<typeof deniedLeafOf>>): void => {
    const ofIssuer = denied.get(leaf.issuer) ?? new Map<string, DeniedLeaf>()
    denied.set(leaf.issuer, ofIssuer)
    ofIssuer.set(leaf.serial, leaf)
    changes++
  }
  // Followed before the denials are loaded: one that is committed in between is seen twice, and never missed. Those of other
  // issuers are kept as well: a replica may hear of a denial before it knows the authority.
  feed.subscribe('program lists', ({ writes }) => {
    let touched = false
    for (const write of writes) {
      const leaf = write.put === 'denial' ? deniedLeafOf(write.value) : null
      if (leaf !== null && isOnProgramList(leaf, nowMs())) {
        add(leaf)
        touched = true
      }
      if (write.put === 'issuer' && write.value.role.startsWith('programs-')) {
        changes++
        touched = true
      }
    }
    if (touched) announceSoon()
  })
  const announceSoon = (): void => {
    if (waiting || listeners.length === 0) return
    waiting = true
    // The first of many at once: until then a program accepts what was revoked.
    timers.after(Math.max(0, notBeforeMs - clock.monotonicMs()), () => {
      waiting = false
      notBeforeMs = clock.monotonicMs() + apartMs
      announce().catch((error: unknown) => log.warn({ err: error }, 'revocation lists for programs could not be made'))
    })
  }
  const load = async (): Promise<void> => {
    if (loaded) return
    for (const denial of await store.denials()) {
      const leaf = deniedLeafOf(denial)
      if (leaf !== null) add(leaf)
    }
    loaded = true
  }
  const current = (): Promise<ListsAnswer> =>
    inTurn(async () => {
      // Most domains have no programs: their denials may be many, and none of them is on a list.
      if (parts.programs.stored().length === 0) return { roots: [], lists: [] }
      await load()
      const ids = parts.programs.stored().map(({ row }) => `${row.id}${row.compromisedAtMs ?? ''}`)
      latestMs = nowMs()
      const atMs = latestMs
      const stamp = [programListDueMs(atMs), changes, ...ids].join()
      if (made?.stamp === stamp) return made.answer
      const goodForMs = Math.max(parts.settings().programListMs, await longestLifetimeMs(store))
      const authorities = parts.programs.listAuthorities()
      const signed = authorities.map((authority) =>
        listOf(authority, programList({ denied: deniedUnder(authority, authorities, denied), nowMs: atMs, goodForMs })),
      )
      const lists = (await Promise.all(signed)).flat()
      for (const ofIssuer of denied.values())
        for (const [serial, leaf] of ofIssuer) if (!isOnProgramList(leaf, atMs)) ofIssuer.delete(serial)
      const answer = { roots: [...parts.programs.roots()], lists }
      made = { stamp, answer }
      return answer
    })
  const withOutside = async (): Promise<ListsAnswer> => ({
    ...(await current()),
    ...outsideRootsPart(parts.outsideRoots()),
  })
  const announce = async (): Promise<void> => {
    const newer = announcementOf(await withOutside())
    const said = JSON.stringify(newer)
    if (said === announced) return
    announced = said
    for (const listener of listeners) listener(newer)
  }

  return {
    lists: withOutside,
    onNewer: (run) => void listeners.push(run),
    async settle() {
      if (parts.programs.stored().length > 0) await announce()
    },
  }
}

const announcementOf = ({ lists, outside_roots: roots = [] }: ListsAnswer): PlaneProgramLists => ({
  lists: lists.map(({ issuer, number }) => ({ issuer, number })),
  ...(roots.length > 0 && { outside_roots: rootsHash(roots) }),
})

/** A root lists the issuing CAs that were withdrawn; an issuing CA its denied leaves. */
const deniedUnder = (
  { row }: ProgramsListAuthority,
  all: readonly ProgramsListAuthority[],
  denied: ReadonlyMap<IssuerId, ReadonlyMap<string, DeniedLeaf>>,
): readonly DeniedLeaf[] => {
  if (row.role === 'programs-issuing') return [...(denied.get(row.id)?.values() ?? [])]
  return all.flatMap(({ row: below, serial }) =>
    below.parent === row.id && below.compromisedAtMs !== null
      ? [{ serial, atMs: below.compromisedAtMs, untilMs: below.notAfterMs, reason: 'ca-compromise' as const }]
      : [],
  )
}

const listOf = async (
  { row, sign }: ProgramsListAuthority,
  list: ReturnType<typeof programList>,
): Promise<ListsAnswer['lists']> => {
  if (sign === null) return []
  const der = await sign({
    number: list.number,
    baseNumber: null,
    thisUpdateMs: wholeSecondMs(list.thisUpdateMs),
    nextUpdateMs: list.nextUpdateMs,
    entries: list.entries,
    freshestUrl: null,
  })
  return [
    {
      issuer: row.id,
      role: row.role === 'programs-root' ? 'root' : 'issuing',
      number: list.number,
      next_update: isoTime(list.nextUpdateMs),
      list: toPem('X509 CRL', der),
      ...(row.role === 'programs-root' ? {} : { certificate: toPem('CERTIFICATE', Buffer.from(row.der, 'base64')) }),
    },
  ]
}

/** Of all outputs that are listed now. Lists are made seldom. */
const longestLifetimeMs = async (store: ListCore['store']): Promise<number> => {
  const profiles = await store.profiles()
  let longest = Math.max(0, ...profiles.flatMap(({ value }) => value.outputs.map(({ lifetimeMs }) => lifetimeMs)))
  for await (const { outputs } of everyRow(store, 'vcluster', ({ name }) => name))
    longest = Math.max(longest, ...outputs.map(({ lifetimeMs }) => lifetimeMs))
  return longest
}
