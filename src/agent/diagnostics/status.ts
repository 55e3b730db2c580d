// `muster agent status`: what the agent on this machine is doing, in sentences; also when it is not running.

import { overlayFaultIn, type OverlayFault } from '#wire/core/overlay-statement.ts'
import { parseIsoTime, type Clock } from '#platform/clock.ts'
import { diskSpace } from '#platform/disk-space.ts'
import { stillRuns } from '#platform/process-mark.ts'
import { counted, durationWords } from '#domain/core/in-words.ts'
import { codeOf } from './agent-code.ts'
import { readStatus, type StatusFile } from './status-file.ts'

export type AgentStatus = {
  readonly running: boolean
  /** It runs and has a channel open, with a certificate that is valid. */
  readonly healthy: boolean
  readonly sentences: readonly string[]
  /** The short code; null when nothing is wrong, or no agent ever ran. */
  readonly code: string | null
  /** As the agent wrote it; null when it never ran here. */
  readonly details: StatusFile | null
}

export const agentStatus = (stateFolder: string, clock: Clock): AgentStatus => {
  const details = readStatus(stateFolder)
  if (details === null) {
    return { running: false, healthy: false, sentences: [`No agent has run on ${stateFolder}.`], code: null, details }
  }
  const running = isRunning(details)
  const nowMs = judgedNowMs(details, running, clock)
  const described = explain(details, running, nowMs)
  if (described.healthy && details.troubles.length === 0) return { ...described, running, code: null, details }
  const freeBytes = diskSpace(stateFolder)?.availableBytes ?? null
  const code = codeOf({ status: details, running, nowMs, freeBytes })
  return { ...described, sentences: [...described.sentences, readOut(code)], running, code, details }
}

export const isRunning = (status: StatusFile): boolean => status.phase !== 'stopped' && stillRuns(status)

/** An agent that knows its machine's clock to be wrong writes down true times: they are compared with the true time. */
export const judgedNowMs = (status: StatusFile, running: boolean, clock: Clock): number =>
  clock.nowMs() + (running ? (status.plane?.clock_behind_ms ?? 0) : 0)

export const readOut = (code: string): string => `Its short code is ${code}; where the plane is: muster explain ${code}`

/** Pure: the status file, whether its process lives, and the time. */
export const explain = (
  status: StatusFile,
  running: boolean,
  nowMs: number,
): Pick<AgentStatus, 'healthy' | 'sentences'> => {
  const expiresInMs = status.certificate === null ? null : (parseIsoTime(status.certificate.not_after) ?? nowMs) - nowMs
  const valid = expiresInMs !== null && expiresInMs > 0
  return {
    healthy: running && status.channel.open && valid,
    sentences: [
      doing(status, running, nowMs),
      ...who(status),
      ...(running ? overlay(status) : []),
      ...certificate(status, running, expiresInMs, nowMs),
      ...trust(status),
      ...network(status, running),
      ...outputs(status, nowMs),
      ...tasks(status, running, nowMs),
      ...(running ? helper(status) : []),
      ...status.troubles.flatMap((what) => [
        `${what.code} (${what.place}, ${ago(what.since, nowMs)}, ${times(what.attempts)}): ${what.text}`,
        ...(what.next_try_at !== null && running ? [`It tries again ${fromNow(what.next_try_at, nowMs)}.`] : []),
        `What to do: ${what.next}`,
      ]),
    ],
  }
}

const doing = (status: StatusFile, running: boolean, nowMs: number): string => {
  if (status.phase === 'stopped') {
    const { outcome } = status
    if (outcome === null || outcome.code === null) return `The agent was stopped ${ago(status.phase_since, nowMs)}.`
    return `The agent gave up ${ago(status.phase_since, nowMs)}: ${outcome.code}: ${outcome.text} What to do: ${outcome.next}`
  }
  if (!running)
    return `The agent is not running; it last wrote its status ${ago(status.written_at, nowMs)} and did not report that it stopped.`
  const since = lasting(status.phase_since, nowMs)
  switch (status.phase) {
    case 'starting':
      return `The agent (process ${status.pid}) is starting.`
    case 'enrolling':
      return `The agent (process ${status.pid}) is enrolling, ${since}.`
    case 'rejoining':
      return `The agent (process ${status.pid}) is looking for another way in, ${since}: the plane does not take its identity.`
    case 'running':
      return status.channel.open
        ? `The agent (process ${status.pid}) is connected to ${status.channel.url}, ${lasting(status.channel.since, nowMs)}.`
        : `The agent (process ${status.pid}) is without a channel, ${lasting(status.channel.since, nowMs)}, and is connecting.`
  }
}

const who = ({ node_id, domain, profile, vcluster }: StatusFile): string[] =>
  node_id === null
    ? ['It has no identity yet.']
    : [
        `It is node ${node_id} of domain ${domain}, profile ${profile}, ${vcluster === null ? 'in no vCluster' : `in vCluster ${vcluster}`}.`,
      ]

const overlay = (status: StatusFile): string[] => {
  const { overlay: state } = status
  if (state === undefined) return []
  const { vcluster_revision: revision, services } = state
  const of = revision === 0 ? 'the overlay of maintenance mode' : `overlay revision ${revision}`
  const each = services.map(({ name, state: how, restarts, pid, unapplied = [] }) => {
    const what = [
      how,
      ...(pid === null ? [] : [`process ${pid}`]),
      ...(restarts === 0 ? [] : [`restarted ${times(restarts)}`]),
      ...(unapplied.length === 0 ? [] : [`without ${unapplied.join(', ')}`]),
    ]
    return `${name} (${what.join(', ')})`
  })
  return [
    state.applied
      ? `It runs ${of}: ${each.length === 0 ? 'no services' : each.join(', ')}.`
      : `It does not run ${of} as it should: ${state.detail}; services: ${each.length === 0 ? 'none' : each.join(', ')}.`,
    // The first sentence has said so of an overlay that is not in place.
    ...overlayTroubles({ ...status, overlay: { ...state, applied: true } }).map(({ text }) => text),
    ...(state.checks ?? [])
      .filter((check) => check.state === 'not_run')
      .map(({ name, line }) => `Check ${name} was not made: ${line}.`),
  ]
}

const nextForService = (name: string, fault: OverlayFault | null): string => {
  switch (fault) {
    case null:
      return `Correct what service ${name} needs on this machine, or what the vCluster asks for; the agent starts it again`
    case 'STATEMENT_NOT_SIGNED':
    case 'KEYS_UNREADABLE':
      return 'Lay down the statement keys of this plane, as root: muster ca bundle --statements, then muster agent trust --statements FILE'
    case 'STATEMENT_OF_ANOTHER':
      return 'Correct [node] of /etc/muster/agent.toml, as root: muster agent helper --check'
    case 'NOT_KEPT':
      return 'See the disk and the state folder of the helper; it is tried again'
    case 'STATEMENT_OLDER':
      return 'If the plane was restored from a backup, remove overlay-statement from the state folder of the helper, as root'
    case 'STATEMENT_MISSING':
    case 'STATEMENT_REPLAYED':
    case 'NOT_IN_STATEMENT':
      return 'The agent fetches a statement of the plane for its helper and tries again; see that it is connected'
  }
}

/** What is wrong with what it runs, in the words of the conditions that the plane raises for it, and what to do. */
export const overlayTroubles = ({ overlay: state }: StatusFile): readonly { text: string; next: string }[] => {
  if (state === undefined) return []
  const { applied, detail, services, drift, checks = [] } = state
  return [
    ...(applied
      ? []
      : [
          {
            text: `overlay_failed: what its vCluster asks for is not in place: ${detail}.`,
            next: 'See the disk and the permissions of its state folder; it is tried again every 30 seconds',
          },
        ]),
    ...services
      .filter((service) => service.state === 'failed')
      .map(({ name, error = 'not running', output = [] }) => ({
        text: `service_failed: ${name}: ${[error, ...output].join(' | ')}`,
        next: nextForService(name, overlayFaultIn(error)),
      })),
    ...checks
      .filter((check) => check.state === 'failed')
      .map(({ name, line }) => ({
        text: `unhealthy: check ${name}: ${line}`,
        next: `Put right what check ${name} has found; no new work is placed here until it passes`,
      })),
    ...(drift.length === 0
      ? []
      : [
          {
            text: `config_drift: what was applied is not what is there any more: ${drift.join('; ')}.`,
            next: 'Put it right, or let the agent do so: enforcementMode=enforce of its vCluster',
          },
        ]),
  ]
}

const certificate = (status: StatusFile, running: boolean, expiresInMs: number | null, nowMs: number): string[] => {
  if (status.certificate === null || expiresInMs === null) return []
  const { serial, not_after, renew_at, key } = status.certificate
  if (expiresInMs <= 0) {
    return [
      `cert_expired: its certificate ${serial} expired ${ago(not_after, nowMs)}. What to do: see how it comes back: muster agent explain`,
    ]
  }
  const left = durationWords(expiresInMs)
  // The plane may have refused the certificate: an earlier sentence says so.
  if (!running) return [`Its certificate ${serial} ends in ${left}, and is not renewed while no agent runs.`]
  const where = key === 'memory' ? 'memory only' : 'a file'
  return [
    `Its certificate ${serial} is valid for ${left}, is renewed ${fromNow(renew_at, nowMs)}, and its key is in ${where}.`,
  ]
}

const trust = ({ trust: known }: StatusFile): string[] => {
  if (known === undefined) return []
  const by = (roots: readonly string[]): string =>
    roots.length === 0 ? 'no root' : `root ${roots.map((root) => `sha256:${root}`).join(', ')}`
  return [
    `It knows the plane by ${by(known.plane)}, and its recovery listener by ${by(known.recovery)}.`,
    ...(known.certificate === null ? [] : [`Its own certificate is under ${by([known.certificate])}.`]),
  ]
}

const network = ({ wireguard }: StatusFile, running: boolean): string[] => {
  if (wireguard === undefined || !running) return []
  const { interface: name, kind, address, peers, trouble } = wireguard
  const up = address === null ? [] : [`WireGuard ${name} (${kind}) is ${address}, with ${counted(peers, 'peer')}.`]
  return trouble === null ? up : [...up, `${trouble.code}: ${trouble.text}`, `What to do: ${trouble.next}`]
}

const outputs = ({ outputs: all = [] }: StatusFile, nowMs: number): string[] =>
  all.flatMap(({ name, place, serial, not_after, failure }) => [
    serial === null || not_after === null
      ? `Output ${name} has no leaf in place.`
      : `Output ${name} is in ${place}: leaf ${serial}, valid ${untilWords(not_after, nowMs)}.`,
    ...(failure === null ? [] : [`Output ${name} is not as it should be: ${failure}`]),
  ])

const helper = ({ helper: state }: StatusFile): string[] => {
  if (state === undefined) return []
  const why = state.there ? 'Its helper is not allowed everything' : 'There is no helper on this host'
  return [
    ...(state.lacks.length === 0 ? [] : [`${why}; it has no ${state.lacks.join(', no ')}.`]),
    ...(state.overlays === 'unsigned'
      ? [
          'Its helper starts what the vCluster names at the word of the agent: no statement keys are pinned here (muster agent trust).',
        ]
      : []),
  ]
}

const taskWords = {
  received: 'is to be begun',
  running: 'runs',
  ended: 'has ended, and its result is on its way',
} as const

const tasks = ({ tasks: all = [] }: StatusFile, running: boolean, nowMs: number): string[] =>
  running
    ? all.map(({ id, type, state, since }) => `Task ${id} (${type}) ${taskWords[state]}, ${lasting(since, nowMs)}.`)
    : []

const untilWords = (time: string, nowMs: number): string => {
  const ms = (parseIsoTime(time) ?? nowMs) - nowMs
  return ms > 0 ? `for ${durationWords(ms)}` : `until ${durationWords(-ms)} ago`
}

export const ago = (time: string, nowMs: number): string => {
  const ms = nowMs - (parseIsoTime(time) ?? nowMs)
  return ms < 1000 ? 'just now' : `${durationWords(ms)} ago`
}

const lasting = (time: string, nowMs: number): string => {
  const ms = nowMs - (parseIsoTime(time) ?? nowMs)
  return ms < 1000 ? 'since just now' : `for ${durationWords(ms)}`
}

export const fromNow = (time: string, nowMs: number): string => {
  const ms = (parseIsoTime(time) ?? nowMs) - nowMs
  return ms < 1000 ? 'now' : `in ${durationWords(ms)}`
}

export const times = (count: number): string => (count === 1 ? 'once' : `${count} times`)
