// What led to the state of a node: journal entries and events of its agent, as one chain in the order of time. Links of one episode have
// one correlation.

import { boundedText } from '#domain/core/change.ts'
import type { EntryBody, EntryType, JournalEntry } from '#domain/core/journal-entry.ts'

export type StoryEntry = Pick<JournalEntry, 'type' | 'atMs' | 'actor' | 'source' | 'correlation' | 'body'>

/** A line of the record an agent keeps and reports. */
export type AgentEvent = { readonly atMs: number; readonly what: string; readonly correlation: string | null }

export type ChainLink = {
  readonly atMs: number
  readonly what: string
  readonly who: string
  readonly correlation: string | null
}

export const causalChain = (entries: readonly StoryEntry[], events: readonly AgentEvent[], most = 40): ChainLink[] => {
  const links = [...withoutRoutine(entries).flatMap(linkOf), ...events.map(agentLink)]
  const byTime = links.toSorted((a, b) => a.atMs - b.atMs)
  return byTime.reduce(coalesce, []).slice(-most).map(counted)
}

/** Of what happens every day only the last time says something. */
const routine: readonly EntryType[] = ['node.renewed', 'node.renewal_confirmed']

/**
 * What a chain is made of, in groups of which each has the last entries of its own: what happens often, or as often as a caller
 * likes, must not take the place of the rest.
 */
export const storyTypes = (): readonly (readonly EntryType[])[] => {
  const often = [...routine, 'refused'] satisfies EntryType[]
  const explained = Object.keys(sentences) as EntryType[]
  const ofTasks = explained.filter(isOfTask)
  return [
    explained.filter((type) => !often.includes(type) && !isOfTask(type)),
    ofTasks,
    ...often.map((type): readonly EntryType[] => [type]),
  ]
}

/** A story has only the last tasks of a node. */
const mostTasks = 3

const isOfTask = (type: EntryType): boolean => type.startsWith('task.')

const withoutRoutine = (entries: readonly StoryEntry[]): readonly StoryEntry[] => {
  const last = new Map(entries.map((entry) => [entry.type, entry]))
  const tasks = entries.filter(({ type }) => isOfTask(type)).map(({ body }) => body['task'])
  const lastTasks = [...new Set(tasks.toReversed())].slice(0, mostTasks)
  return entries.filter((entry) => {
    if (isOfTask(entry.type)) return lastTasks.includes(entry.body['task'])
    return !routine.includes(entry.type) || last.get(entry.type) === entry
  })
}

const linkOf = (entry: StoryEntry): ChainLink[] => {
  const { type, atMs, actor, source, correlation, body } = entry
  const tell = sentences[type]
  if (tell === undefined) return []
  const who = source === null ? actor : `${actor} (${source})`
  return [{ atMs, what: boundedText(tell(body), 512), who, correlation }]
}

const agentLink = ({ atMs, what, correlation }: AgentEvent): ChainLink => ({
  atMs,
  what: boundedText(what, 512),
  who: 'its agent',
  correlation,
})

type Counted = ChainLink & { readonly times: number; readonly lastMs: number }

/** A caller that is refused over and over is one link. */
const coalesce = (chain: Counted[], link: ChainLink): Counted[] => {
  const before = chain.at(-1)
  if (before === undefined || before.what !== link.what || before.who !== link.who) {
    return [...chain, { ...link, times: 1, lastMs: link.atMs }]
  }
  return [...chain.slice(0, -1), { ...before, times: before.times + 1, lastMs: link.atMs }]
}

const counted = ({ times, lastMs, ...link }: Counted): ChainLink =>
  times === 1 ? link : { ...link, what: `${link.what}, ${times} times in ${Math.ceil((lastMs - link.atMs) / 1000)} s` }

const word = (body: EntryBody, name: string): string => {
  const value = body[name]
  if (Array.isArray(value)) return value.join(', ')
  return value === null || value === undefined ? 'unknown' : String(value)
}
/** Claims have their kind before them: `dns:web.example`. */
const names = (body: EntryBody): string => word(body, 'names').replace(/\b(?:dns|ip):/g, '')
const ofTask = (body: EntryBody): string => `task ${word(body, 'task')} (${word(body, 'type')})`
/** Why it did not run to its end, as its host or the plane said it. */
const outcome = ({ code = null, exit_code: exitCode = null, detail = null }: EntryBody): string => {
  const parts = [code, exitCode === null ? null : `exit code ${String(exitCode)}`, detail].filter(
    (part) => part !== null,
  )
  return parts.length === 0 ? '' : `: ${parts.map(String).join(', ')}`
}
const because = (body: EntryBody): string => (body['reason'] === undefined ? '' : `: ${word(body, 'reason')}`)

/** Entries of other types do not explain the state of a node. */
const sentences: Partial<Record<EntryType, (body: EntryBody) => string>> = {
  'enrollment_token.created': () => 'a token was made for it',
  'enrollment_token.revoked': () => 'its token was withdrawn',
  'node.registered': (body) => `registered under profile ${word(body, 'profile')}`,
  'host.enrolled': (body) => `enrolled by ${word(body, 'method')}: a certificate good until ${word(body, 'not_after')}`,
  'host.revoked': (body) => `revoked${because(body)}`,
  'node.confirmed': () => 'its new certificate works: it is active',
  'node.renewed': (body) => `renewed: a certificate good until ${word(body, 'not_after')}`,
  'node.renewal_confirmed': () => 'its renewed certificate works',
  'node.lapsed': (body) => `inactive: no channel since ${word(body, 'last_present')}`,
  'node.returned': () => 'back, and active again',
  'node.approved': (body) => `approved by ${word(body, 'approvals')} of ${word(body, 'needed')}`,
  'node.settled': (body) =>
    `the connected machine was said to be the right one by ${word(body, 'said')} of ${word(body, 'needed')}${because(body)}`,
  'node.assigned': (body) => `put into vCluster ${word(body, 'vcluster')}`,
  'node.moved': (body) => `moved from vCluster ${word(body, 'was')} to ${word(body, 'vcluster')}`,
  'node.unassigned': (body) => `taken out of vCluster ${word(body, 'was')}`,
  'node.names_added': (body) => `got names for its programs: ${names(body)}`,
  'node.names_removed': (body) => `lost names of its programs: ${names(body)}`,
  'program.issued': (body) => `output ${word(body, 'output')} got a certificate good until ${word(body, 'not_after')}`,
  'program.ended': (body) => `certificates of output ${word(body, 'output')} were denied: ${word(body, 'why')}`,
  'node.draining': () => 'draining: nothing new is placed on it',
  'node.drained': () => 'drained: nothing runs on it',
  'node.undrained': () => 'work may be placed on it again',
  'node.quarantined': (body) => `quarantined${because(body)}`,
  'node.released': (body) => `released from quarantine (${word(body, 'quarantined_for')})`,
  'node.condition_raised': (body) => `${word(body, 'condition')}${because(body)}`,
  'node.condition_cleared': (body) => `${word(body, 'condition')} is over`,
  'node.superseded': (body) => `its epoch was superseded by epoch ${word(body, 'by_epoch')}`,
  'node.second_holder': (body) => `another machine used its identity${because(body)}`,
  'node.recovery_requested': (body) => {
    const bundle = body['repair_reason'] === undefined ? '' : ` with its repair bundle (${word(body, 'repair_reason')})`
    return `it asked to recover${bundle}: ${word(body, 'failure_class')} since ${word(body, 'failed_since')}`
  },
  'node.purging': (body) => `its record is being purged${because(body)}`,
  'node.purged': (body) => `the record of an earlier node of this name was purged${because(body)}`,
  'node.provisioning_reported': (body) =>
    body['state'] === null ? 'no adapter provisions it any more' : `its adapter says ${word(body, 'state')}`,
  'node.scrape_address_changed': (body) =>
    body['address'] === null ? 'it is scraped no more' : `Prometheus scrapes it at ${word(body, 'address')}`,
  'node.recovered': () => 'recovered: a new epoch, its old certificates are withdrawn',
  'node.recovery_denied': () => 'an operator said no to its recovery',
  'node.repair_bundle_issued': (body) => `a repair bundle was made for it${because(body)}`,
  'node.repaired': () => 'it came back with its repair bundle, and stays in quarantine',
  'node.repair_evidence': (body) =>
    `its evidence after the repair: ${body['passed'] === true ? 'passed' : 'not passed'}`,
  'node.recoverable': () => 'its recovery rehearsal passed',
  'node.unrecoverable': (body) => `its recovery rehearsal failed: ${word(body, 'why')}`,
  'task.queued': (body) => `${ofTask(body)} was queued`,
  'task.dispatched': (body) => `${ofTask(body)} was signed and sent to it, as number ${word(body, 'counter')}`,
  'task.completed': (body) => `${ofTask(body)} is completed${outcome(body)}`,
  'task.failed': (body) => `${ofTask(body)} failed${outcome(body)}`,
  'task.refused': (body) => `its host refused ${ofTask(body)}${outcome(body)}`,
  'task.unknown': (body) => `whether ${ofTask(body)} was carried out is unknown${outcome(body)}`,
  'task.expired': (body) => `${ofTask(body)} expired before it was sent`,
  'task.cancelled': (body) => `${ofTask(body)} was cancelled: ${word(body, 'why')}`,
  refused: (body) => {
    const detail = body['detail'] === null || body['detail'] === undefined ? '' : ` (${word(body, 'detail')})`
    const copied = body['code'] === 'KEY_IN_USE' ? copiedWords : ''
    return `refused ${word(body, 'code')} at ${word(body, 'attempt')}${detail}${shown(body)}${copied}`
  },
}

const copiedWords =
  "; it brought a key that was certified before: if it was started from an image, remove the agent's state folder from that; a token it brought is still good"

/** The hardware a machine showed that was refused. */
const shown = ({ reported_macs: macs, reported_bmc_serial: serial }: StoryEntry['body']): string => {
  const parts = [...(Array.isArray(macs) ? macs : []), ...(typeof serial === 'string' ? [`BMC serial ${serial}`] : [])]
  return parts.length === 0 ? '' : `, showing ${parts.join(', ')}`
}
