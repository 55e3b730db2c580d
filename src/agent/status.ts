// `muster agent status`: what the agent on this machine is doing, in sentences; also when it is not running.

import { parseIsoTime, type Clock } from '#platform/clock.ts'
import { stillRuns } from '#platform/process-mark.ts'
import { durationWords } from '#domain/duration-words.ts'
import { readStatusFile, type StatusFile } from './status-file.ts'

export type AgentStatus = {
  readonly running: boolean
  /** It runs and has a channel open, with a certificate that is valid. */
  readonly healthy: boolean
  readonly sentences: readonly string[]
  /** As the agent wrote it; null when it never ran here. */
  readonly details: StatusFile | null
}

export const agentStatus = (stateFolder: string, clock: Clock): AgentStatus => {
  const details = readStatusFile(stateFolder)
  if (details === null) {
    return { running: false, healthy: false, sentences: [`No agent has run on ${stateFolder}.`], details }
  }
  const running = details.phase !== 'stopped' && stillRuns(details)
  return { ...explain(details, running, clock.nowMs()), running, details }
}

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
      ...certificate(status, running, expiresInMs, nowMs),
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
    return `The agent is not running; it last wrote its status ${ago(status.written_at, nowMs)} and did not say goodbye.`
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

const certificate = (status: StatusFile, running: boolean, expiresInMs: number | null, nowMs: number): string[] => {
  if (status.certificate === null || expiresInMs === null) return []
  const { serial, not_after, renew_at, key } = status.certificate
  if (expiresInMs <= 0) {
    return [
      `cert_expired: its certificate ${serial} expired ${ago(not_after, nowMs)}. What to do: muster token create --node ${status.node_id}`,
    ]
  }
  const left = durationWords(expiresInMs)
  // The plane may have said that it is worth nothing: that is for the sentence before to tell.
  if (!running) return [`Its certificate ${serial} ends in ${left}, and is not renewed while no agent runs.`]
  const where = key === 'memory' ? 'memory only' : 'a file'
  return [
    `Its certificate ${serial} is valid for ${left}, is renewed ${fromNow(renew_at, nowMs)}, and its key is in ${where}.`,
  ]
}

const ago = (time: string, nowMs: number): string => {
  const ms = nowMs - (parseIsoTime(time) ?? nowMs)
  return ms < 1000 ? 'just now' : `${durationWords(ms)} ago`
}

const lasting = (time: string, nowMs: number): string => {
  const ms = nowMs - (parseIsoTime(time) ?? nowMs)
  return ms < 1000 ? 'since just now' : `for ${durationWords(ms)}`
}

const fromNow = (time: string, nowMs: number): string => {
  const ms = (parseIsoTime(time) ?? nowMs) - nowMs
  return ms < 1000 ? 'now' : `in ${durationWords(ms)}`
}

const times = (count: number): string => (count === 1 ? 'once' : `${count} times`)
