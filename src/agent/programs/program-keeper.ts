// Keeps a leaf for every output of the configuration: has it signed and renewed by the plane, fetches the revocation lists beside
// it, and has all of it put in place on the host. What is in place stays there while the plane is away.

import type { AgentCore, AgentParts } from '#agent/core/agent-parts.ts'
import { pause } from '#agent/core/pause.ts'
import { spreadMs } from '#agent/state/should-renew.ts'
import type { Identity } from '#agent/state/credentials.ts'
import type { PlaneFailure } from '#agent/link/plane-failure.ts'
import type { Trouble } from '#agent/core/trouble.ts'
import type { ParsedCertificate } from '#pki/parse-certificate.ts'
import { rootsHash } from '#pki/pem.ts'
import { mostOutputs, type ConfigOutput, type PlaneProgramLists } from '#wire/programs/programs-api.ts'
import { askAgain, askForLeaf, askForLists, type AskingAgent } from './ask-plane.ts'
import { authoritiesAbove, remembered } from './build-generation.ts'
import { listsFrom } from './check-answer.ts'
import { noLeaves, openLeafStore, withLeaf, withLeafRequest, type ProgramLeaf } from './leaf-store.ts'
import { openListStore, type KnownList } from './list-store.ts'
import { openOutputReporter, type OutputsSender } from './output-reporter.ts'
import { openPlacement } from './placement.ts'
import type { NodeOfPrograms, Publisher } from './publisher.ts'
import { needsLeaf } from './wanted-outputs.ts'

export type ProgramKeeper = {
  /** Puts what is on the disk in place, before the plane is reached. */
  start(): void
  /** The plane has sent a configuration, and it was kept. */
  configChanged(): void
  /** The channel in use; null: none. */
  use(sender: OutputsSender | null): void
  /** The plane has newer lists. */
  announced(lists: PlaneProgramLists): void
  /** Asks the plane for what is missing or due, until the agent is stopped. */
  keep(agent: AskingAgent, identityNow: () => Identity): Promise<void>
  /** The node was revoked: its programs lose their keys and files. What cannot be removed now is tried again, also after a restart. */
  withdraw(): Promise<void>
  /** Resolves when nothing that was withdrawn can be removed any more, or when the agent is stopped. */
  withdrawn(signal: AbortSignal): Promise<void>
  close(): Promise<void>
}

type ProgramParts = Pick<AgentParts, 'lastConfig' | 'record' | 'storage'> & {
  readonly config: Pick<AgentParts['config'], 'stateFolder' | 'publish'>
  /** Whether keys may be written to a disk, as the profile says now. */
  readonly keysOnDisk: () => boolean
  /** Null: this machine is no node yet. */
  readonly nodeNow: () => NodeOfPrograms | null
}

const lookEveryMs = 1_000
const idleMs = 60_000
const usualRefreshMs = 30 * 60_000
/** Lists are revoked by all nodes at once: they do not come for them in the same moment. */
const announcedSpreadMs = 250
const newChannelSpreadMs = 5_000
const fetchedLatelyMs = 60_000

type Tries = { readonly failures: number; readonly notBeforeMs: number; readonly trouble: Trouble | null }
const noTries: Tries = { failures: 0, notBeforeMs: -Infinity, trouble: null }

export const openProgramKeeper = (
  core: AgentCore,
  { config, keysOnDisk, nodeNow, lastConfig, record, storage }: ProgramParts,
  publisher: Publisher,
): ProgramKeeper => {
  const { clock, timers, random, log } = core
  const leaves = openLeafStore(config.stateFolder, keysOnDisk, (act) => storage.credentialWrite(act))
  const lists = openListStore(config.stateFolder)
  const outputs = (): readonly ConfigOutput[] | null => lastConfig.current()?.outputs ?? null
  const tries = new Map<string, Tries>()
  const troubleOf = (output: string): Trouble | null => tries.get(output)?.trouble ?? null
  const reporter = openOutputReporter(record)
  let hasHad = lists.current().roots.length > 0
  let isWithdrawn = false
  const report = (): void => {
    // The configuration of a node that was revoked still lists them.
    const wanted = isWithdrawn ? [] : (outputs() ?? [])
    const states = wanted.map((output) => placement.stateOf(output, troubleOf(output.name)))
    hasHad ||= states.length > 0
    reporter.report([...states, ...placement.leftovers(wanted)].slice(0, mostOutputs), hasHad)
  }
  const placement = openPlacement(core, { leaves, lists, record, publisher, nodeNow, outputs }, report)

  /** Whether the plane that was last connected has these calls. */
  let offered = false
  let saidUnoffered = false
  let listTries = noTries
  let fetchedAtMs: number | null = null
  let refreshMs = usualRefreshMs
  let fetchAtMs = Infinity
  let wake = (): void => {}
  let cancelLooks = (): void => {}

  const sayUnoffered = (): void => {
    if (config.publish === null || saidUnoffered) return
    saidUnoffered = true
    const text = `The plane has no outputs, as planes before 0.4.0: nothing is published in ${config.publish} until it is upgraded.`
    record.changed('programs', 'not_offered', text)
    log.warn({ code: 'not_offered' }, text)
  }
  const fetchWithin = (ms: number): void => {
    fetchAtMs = Math.min(fetchAtMs, clock.monotonicMs() + ms * random.unit())
    wake()
  }
  const leafOf = (output: string): ProgramLeaf | null =>
    leaves.current().leaves.find((leaf) => leaf.output === output) ?? null
  const failed = (what: Tries, failure: Exclude<PlaneFailure, { kind: 'stopped' }>, leaf: ProgramLeaf | null) => {
    const remainingMs = leaf === null ? null : leaf.notAfterMs - clock.nowMs()
    const { afterMs, withNewKey } = askAgain(failure, what.failures, remainingMs, random.unit())
    const { trouble } = failure
    const next: Tries = { failures: what.failures + 1, notBeforeMs: clock.monotonicMs() + afterMs, trouble }
    return { next, withNewKey, afterMs }
  }

  const askFor = async (agent: AskingAgent, identity: Identity, output: ConfigOutput): Promise<void> => {
    const before = tries.get(output.name) ?? noTries
    if (clock.monotonicMs() < before.notBeforeMs) return
    const given = await askForLeaf(agent, identity, output, leaves)
    if (given.kind === 'stopped') return
    if (given.kind === 'leaf') {
      tries.delete(output.name)
      leaves.keep(withLeaf(leaves.current(), given.leaf))
      lists.keep({ roots: [...given.roots], outsideRoots: [...given.outsideRoots] })
      log.info({ output: output.name, serial: given.leaf.serial }, 'got a leaf for a program')
      record.changed('programs', 'leaf', `Output ${output.name}: the plane signed leaf ${given.leaf.serial}.`)
      return
    }
    const { next, withNewKey, afterMs } = failed(before, given, leafOf(output.name))
    tries.set(output.name, next)
    if (withNewKey) leaves.keep(withLeafRequest(leaves.current(), output.name, null))
    const { code, text } = given.trouble
    if (before.trouble?.code !== code) record.changed('programs', code, `Output ${output.name} got no leaf: ${text}`)
    log.warn({ output: output.name, code, next: given.trouble.next, waitMs: Math.round(afterMs) }, text)
  }

  const askForLeaves = async (agent: AskingAgent, identityNow: () => Identity): Promise<void> => {
    for (const output of outputs() ?? []) {
      const identity = identityNow()
      if (agent.signal.aborted || !offered) return
      if (needsLeaf(output, leafOf(output.name), identity.epoch, clock.nowMs())) await askFor(agent, identity, output)
    }
  }

  const chainsOf = remembered(
    (all: readonly ProgramLeaf[], roots: readonly string[], outsideRoots: readonly string[]) =>
      all.flatMap((leaf) => {
        const above = authoritiesAbove(leaf, { roots, outsideRoots }, clock.nowMs())
        return above.kind === 'above' ? above.listed : []
      }),
  )
  const chains = (): readonly ParsedCertificate[] =>
    chainsOf(leaves.current().leaves, lists.current().roots, lists.outsideRoots())
  const lacksList = (): boolean => {
    const here = new Set(lists.lists().map(({ authorityKeyId }) => authorityKeyId))
    return chains().some(({ subjectKeyId }) => subjectKeyId === null || !here.has(subjectKeyId))
  }
  const mayFetch = (): boolean =>
    offered && clock.monotonicMs() >= listTries.notBeforeMs && leaves.current().leaves.length > 0
  const listsAreDue = (): boolean => {
    const nowMs = clock.monotonicMs()
    return nowMs >= fetchAtMs || fetchedAtMs === null || nowMs - fetchedAtMs >= refreshMs || lacksList()
  }
  const fetchLists = async (agent: AskingAgent, identity: Identity): Promise<void> => {
    if (!mayFetch() || !listsAreDue()) return
    const wantedAtMs = fetchAtMs
    const answer = await askForLists(agent, identity)
    if (answer.kind === 'stopped') return
    if (answer.kind !== 'answer') {
      const { next, afterMs } = failed(listTries, answer, null)
      listTries = next
      const { code, text } = answer.trouble
      return log.warn({ code, waitMs: Math.round(afterMs) }, `no revocation lists for programs: ${text}`)
    }
    const received = listsFrom(lists.current(), answer.value, chains(), clock.nowMs())
    if (received.kind === 'unusable') {
      listTries = { ...noTries, failures: listTries.failures + 1, notBeforeMs: clock.monotonicMs() + 60_000 }
      return log.error({ why: received.why }, 'the revocation lists of the plane cannot be used')
    }
    for (const what of received.skipped) log.warn({ what }, 'a revocation list was not taken')
    // What was announced while the answer was on its way is fetched once more.
    if (fetchAtMs === wantedAtMs) fetchAtMs = Infinity
    fetchedAtMs = clock.monotonicMs()
    lists.keep(received.ledger)
    refreshMs = refreshAfter(lists.lists()) * (1 - random.unit() / 4)
    // A chain whose list the plane does not have is not asked for in a circle.
    listTries = lacksList() ? { ...noTries, notBeforeMs: clock.monotonicMs() + 60_000 } : noTries
  }

  /** Leaves of an identity that this machine no longer has are of no use to the next. */
  const ownLeavesOnly = ({ domain, nodeId }: Identity): void => {
    const { of } = leaves.current()
    if (of !== null && (of.domain !== domain || of.node !== nodeId)) leaves.keep(noLeaves)
  }

  const waitForWork = async (agent: AskingAgent): Promise<void> => {
    const woken = new AbortController()
    wake = () => woken.abort()
    const dueInMs = mayFetch() ? Math.max(0, fetchAtMs - clock.monotonicMs()) : Infinity
    await pause(timers, Math.min(lookMs(), dueInMs), AbortSignal.any([agent.signal, woken.signal]))
    wake = () => {}
  }
  const isIdle = (): boolean => {
    const { placed, placedUnknown } = lists.current()
    const hasNothing = placed.length === 0 && placedUnknown !== true && !lists.isUnread()
    return (outputs() ?? []).length === 0 && hasNothing
  }
  /** A second is a long time for a leaf of a minute; an agent without outputs is woken when it gets some. */
  const lookMs = (): number => {
    if (isIdle()) return idleMs
    const shortestMs = Math.min(...(outputs() ?? []).map(({ lifetime_ms: lifetimeMs }) => lifetimeMs))
    return Math.min(lookEveryMs, Math.max(50, shortestMs / 120))
  }

  return {
    start: () => {
      placement.look()
      cancelLooks = timers.every(lookEveryMs, () => {
        if (!isIdle()) placement.look()
      })
    },
    configChanged: () => {
      // Whatever kept an output from getting a leaf may be different now.
      for (const [name, { failures, trouble }] of tries) tries.set(name, { failures, trouble, notBeforeMs: -Infinity })
      placement.look()
      wake()
    },
    use: (next) => {
      reporter.use(next)
      if (next !== null) offered = next.takesOutputs()
      if (next !== null && !offered) sayUnoffered()
      report()
      if (next === null || !offered) return
      for (const [name, { failures, trouble }] of tries) {
        const remainingMs = (leafOf(name)?.notAfterMs ?? Infinity) - clock.nowMs()
        const notBeforeMs = clock.monotonicMs() + spreadMs(remainingMs, random.unit())
        tries.set(name, { failures, trouble, notBeforeMs })
      }
      // What was announced while there was no channel was not received.
      if (fetchedAtMs === null || clock.monotonicMs() - fetchedAtMs > fetchedLatelyMs) fetchWithin(newChannelSpreadMs)
      wake()
    },
    announced: ({ lists: newer, outside_roots: newerRoots }) => {
      const numbers = new Map(lists.lists().map((list) => [list.authorityKeyId, list.number]))
      const outside = lists.outsideRoots()
      const hasRoots = newerRoots === (outside.length === 0 ? undefined : rootsHash(outside))
      if (!hasRoots || newer.some(({ issuer, number }) => number > (numbers.get(issuer) ?? -1))) {
        listTries = noTries
        fetchWithin(announcedSpreadMs)
      }
    },
    keep: async (agent, identityNow) => {
      isWithdrawn = false
      for (; !agent.signal.aborted; await waitForWork(agent)) {
        ownLeavesOnly(identityNow())
        leaves.retry()
        lists.retry()
        await askForLeaves(agent, identityNow)
        if (!agent.signal.aborted) await fetchLists(agent, identityNow())
        placement.look()
      }
    },
    withdraw: async () => {
      // First: a look at the outputs that is due meanwhile would put them in place again.
      leaves.keep(noLeaves)
      isWithdrawn = true
      await placement.withdraw()
      report()
    },
    withdrawn: async (signal) => {
      if (placement.isWithdrawing()) log.warn('the agent stays until the files of its programs are removed')
      for (; placement.isWithdrawing() && !signal.aborted; await pause(timers, lookEveryMs, signal)) {
        lists.retry()
        placement.look()
        await placement.settled()
      }
    },
    close: async () => {
      cancelLooks()
      await placement.close()
    },
  }
}

/** At least every half an hour, and four times in the life of a list. */
const refreshAfter = (lists: readonly KnownList[]): number =>
  Math.min(usualRefreshMs, ...lists.map(({ thisUpdateMs, nextUpdateMs }) => (nextUpdateMs - thisUpdateMs) / 4))
