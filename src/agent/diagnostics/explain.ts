// `muster agent explain`: what failed, when, what was tried, what happens next and what a person can do. From files alone:
// it works without a network, and when the agent does not run.

import type { Clock } from '#platform/clock.ts'
import { diskSpace } from '#platform/disk-space.ts'
import { durationWords } from '#domain/core/in-words.ts'
import type { RefusalCode } from '#domain/core/refusal-table.ts'
import { certificateLeftMs, codeOf, worstOf } from './agent-code.ts'
import { DamagedCredentials, fileCredentialStore } from '#agent/state/credential-store.ts'
import type { Identity } from '#agent/state/credentials.ts'
import type { RecordedEvent } from './events.ts'
import { readRecord } from './record-files.ts'
import { ago, fromNow, isRunning, judgedNowMs, overlayTroubles, readOut, times } from './status.ts'
import { readStatus, type StatusFile, type StatusTrouble } from './status-file.ts'

export type Explanation = {
  readonly running: boolean
  readonly wrong: readonly string[]
  readonly happened: readonly string[]
  readonly next: readonly string[]
  readonly advice: readonly string[]
  readonly code: string | null
  readonly events: readonly RecordedEvent[]
  readonly identity: IdentityFacts | null
  /** What would bring it back if its certificate were of no use, as far as this machine knows. */
  readonly comeback: Comeback | null
}

/** `registration`: it was revoked. */
type Comeback = 'key' | 'bearer' | 'token' | 'registration'

/** Who the node is and how it could come back; nothing of its keys. */
export type IdentityFacts = {
  readonly node_id: string
  readonly domain: string
  readonly epoch: number
  readonly profile: string
  readonly serial: string
  readonly recovery: 'key' | 'bearer' | 'none'
}

type ExplainFacts = {
  readonly stateFolder: string
  readonly status: StatusFile | null
  readonly running: boolean
  readonly nowMs: number
  readonly events: readonly RecordedEvent[]
  /** Damaged: it is there, and cannot be read. */
  readonly identity: IdentityFacts | 'damaged' | null
  readonly freeBytes: number | null
}

/** Throws when the folder may not be read. */
export const explainAgent = (stateFolder: string, clock: Clock): Explanation => {
  const status = readStatus(stateFolder)
  const running = status !== null && isRunning(status)
  return explanationOf({
    stateFolder,
    status,
    running,
    nowMs: status === null ? clock.nowMs() : judgedNowMs(status, running, clock),
    events: readRecord(stateFolder),
    identity: identityIn(stateFolder),
    freeBytes: diskSpace(stateFolder)?.availableBytes ?? null,
  })
}

const identityIn = (stateFolder: string): ExplainFacts['identity'] => {
  try {
    const { identity } = fileCredentialStore(stateFolder).load()
    return identity === null ? null : factsOf(identity)
  } catch (error) {
    if (error instanceof DamagedCredentials) return 'damaged'
    throw error
  }
}

export const factsOf = (identity: Identity): IdentityFacts => ({
  node_id: identity.nodeId,
  domain: identity.domain,
  epoch: identity.epoch,
  profile: identity.profile.name,
  serial: identity.current.serial,
  recovery: identity.recovery?.credential.kind ?? 'none',
})

export const explanationOf = (facts: ExplainFacts): Explanation => {
  const { status, running, events, nowMs } = facts
  const identity = facts.identity === 'damaged' ? null : facts.identity
  const damaged = facts.identity === 'damaged' ? [`state_damaged: ${facts.stateFolder}/identity.json is damaged.`] : []
  const base = {
    running,
    happened: events.slice(-mostLines).map((event) => lineOf(event, nowMs)),
    events,
    identity,
    comeback: identity === null ? null : comebackOf(identity, status),
  }
  if (status === null) {
    const wrong = [...damaged, `No agent has written its status in ${facts.stateFolder}.`]
    const advice = ['Start it: muster agent run; or name the folder it runs on: muster agent explain --state FOLDER']
    return { ...base, wrong, next: [], advice, code: null }
  }
  return {
    ...base,
    wrong: [...damaged, ...wrongOf(status, running, nowMs)],
    next: running ? nextOf(status, nowMs, base.comeback) : ['Nothing, while no agent runs.'],
    advice: adviceOf(status, running, nowMs),
    code: codeOf({ status, running, nowMs, freeBytes: facts.freeBytes }),
  }
}

const comebackOf = ({ recovery }: IdentityFacts, status: StatusFile | null): Comeback => {
  if (status?.outcome?.kind === 'revoked') return 'registration'
  const isUnknown = status?.troubles.some(({ code }) => code === ('RECOVERY_UNKNOWN' satisfies RefusalCode)) === true
  return recovery === 'none' || isUnknown ? 'token' : recovery
}

const mostLines = 20

const wrongOf = (status: StatusFile, running: boolean, nowMs: number): string[] => {
  const leftMs = certificateLeftMs(status, nowMs)
  const said = [
    ...gaveUp(status, running, nowMs),
    ...(leftMs !== null && leftMs <= 0 ? [`cert_expired: its certificate expired ${durationWords(-leftMs)} ago.`] : []),
    ...byWeight(status).map((what) => wrongLine(what, nowMs)),
    ...(running ? overlayTroubles(status).map(({ text }) => text) : []),
    ...unplacedOutputs(status).map(({ name, failure, not_after: until }) => {
      const waits = until === null ? 'it has no leaf yet' : 'its leaf is not in place yet'
      return `Output ${name}: ${failure ?? waits}`
    }),
  ]
  if (said.length > 0) return said
  return [
    status.channel.open ? 'Nothing: the agent is connected.' : 'Nothing that it knows of; it is not connected yet.',
  ]
}

const gaveUp = ({ outcome, written_at, phase, phase_since }: StatusFile, running: boolean, nowMs: number): string[] => {
  if (running) return []
  if (phase !== 'stopped')
    return [
      `The agent does not run; it last wrote its status ${ago(written_at, nowMs)} and did not report that it stopped.`,
    ]
  if (outcome === null || outcome.code === null) return [`The agent was stopped ${ago(phase_since, nowMs)}.`]
  return [`The agent gave up ${ago(phase_since, nowMs)}: ${outcome.code}: ${outcome.text}`]
}

const wrongLine = (what: StatusTrouble, nowMs: number): string => {
  const evidence = Object.entries(what.evidence ?? {}).map(([name, value]) => `${name} ${value}`)
  const named = what.class === null || what.class === undefined || what.class === what.code ? '' : `${what.class}: `
  const because = evidence.length === 0 ? '' : ` (${evidence.join(', ')})`
  const story = what.correlation === null || what.correlation === undefined ? '' : ` [episode ${what.correlation}]`
  return `${named}${what.code} at ${what.place}, begun ${ago(what.since, nowMs)}, met ${times(what.attempts)}: ${what.text}${because}${story}`
}

/** Also those that failed and have an earlier leaf in place. */
const unplacedOutputs = ({ outputs = [] }: StatusFile): NonNullable<StatusFile['outputs']> =>
  outputs.filter(({ serial, failure }) => serial === null || failure !== null)

const byWeight = ({ troubles }: StatusFile): readonly StatusTrouble[] => {
  const worst = worstOf(troubles)
  return worst === null ? [] : [worst, ...troubles.filter((what) => what !== worst)]
}

const lineOf = (event: RecordedEvent, nowMs: number): string => {
  const often = event.times === 1 ? '' : ` (${times(event.times)}, first ${ago(event.first, nowMs)})`
  const code = event.event === 'failed' || event.event === 'succeeded' ? event.code : ''
  // A success with a code is the end of that failure, which another attempt need not have caused.
  const outcome = event.event === 'succeeded' && code !== '' ? '' : ` ${event.event}`
  return `${event.at} ${event.place}${outcome}: ${code === '' ? '' : `${code}: `}${event.text}${often}`
}

const nextOf = (status: StatusFile, nowMs: number, comeback: Comeback | null): string[] => {
  const tries = status.troubles
    .filter(({ next_try_at }) => next_try_at !== null)
    .map(({ place, next_try_at }) => `${place} is tried again ${fromNow(next_try_at ?? '', nowMs)} (${next_try_at}).`)
  const renewals = (status.outputs ?? []).flatMap(({ name, renew_at }) =>
    renew_at === null ? [] : [`The leaf of output ${name} is renewed ${fromNow(renew_at, nowMs)}.`],
  )
  const tasks = (status.tasks ?? []).map(({ id, type, state }) =>
    state === 'ended'
      ? `The result of task ${id} (${type}) is sent to the plane until it has it.`
      : `Task ${id} (${type}) is carried out.`,
  )
  return [...tries, ...certificateNext(status, nowMs, comeback), ...renewals, ...tasks]
}

const certificateNext = (status: StatusFile, nowMs: number, comeback: Comeback | null): string[] => {
  const leftMs = certificateLeftMs(status, nowMs)
  if (status.certificate === null || leftMs === null) return ['It has no certificate yet; it enrolls until it has one.']
  // The plane does not take it, however long it would be valid.
  if (leftMs > 0 && status.phase === 'rejoining') return []
  if (leftMs > 0)
    return [
      `Its certificate is valid for ${durationWords(leftMs)} more and renewed ${fromNow(status.certificate.renew_at, nowMs)}.`,
    ]
  // Keys that never reach a disk are not recovered, and need not be: the machine is let in as at its first start.
  if (comeback === null && status.certificate.key === 'memory') return ['It joins again, as it did at its start.']
  return comeback === 'key' || comeback === 'bearer'
    ? [`It recovers automatically with its ${comeback === 'key' ? 'recovery key' : 'recovery token'}.`]
    : ['It has nothing to recover with: an operator has to let it in again.']
}

const adviceOf = (status: StatusFile, running: boolean, nowMs: number): string[] => {
  const leftMs = certificateLeftMs(status, nowMs)
  const said = [
    ...(running
      ? []
      : [status.outcome?.next ?? 'Start it: systemctl start muster-agent, or by hand: muster agent run']),
    ...byWeight(status).map(({ next }) => next),
    ...(running ? overlayTroubles(status).map(({ next }) => next) : []),
    ...unplacedOutputs(status).map(
      ({ name }) => `See what is in place for output ${name}: muster agent cert show ${name}`,
    ),
  ]
  if (said.length > 0) return [...new Set(said)]
  if (leftMs !== null && leftMs <= 0) return ['Wait for its recovery, or start it now: muster agent renew --now']
  return ['Nothing.']
}

/** For a terminal. */
export const explanationLines = (explanation: Explanation): readonly string[] => [
  ...(explanation.identity === null ? [] : [whoLine(explanation.identity, explanation.comeback)]),
  ...section('What is wrong', explanation.wrong),
  ...section('What happened', explanation.happened),
  ...section('What happens next', explanation.next),
  ...section('What you can do', explanation.advice),
  ...(explanation.code === null ? [] : [readOut(explanation.code)]),
]

const whoLine = ({ node_id, domain, epoch, profile }: IdentityFacts, comeback: Comeback | null): string => {
  const back = comeback === null ? '' : `; ${ways[comeback]}`
  return `Node ${node_id} of domain ${domain}, epoch ${epoch}, profile ${profile}${back}.`
}

const ways: Readonly<Record<Comeback, string>> = {
  key: 'can come back by its recovery key',
  bearer: 'can come back by its recovery token',
  token: 'can come back by a new token only',
  registration: 'it was revoked, and comes back only if an operator registers it anew',
}

const section = (title: string, lines: readonly string[]): readonly string[] =>
  lines.length === 0 ? [] : [`${title}:`, ...lines.map((line) => `  ${line}`)]
