// `node explain`: how a node stands, what led there, and what a person could do about it.

import { boundedText } from '#domain/core/change.ts'
import { causalChain, type StoryEntry, type ToldLine } from '#domain/node/explain-story.ts'
import { nextCommands } from '#domain/node/next-commands.ts'
import type { Node } from '#domain/core/node.ts'
import { isoTime, parseIsoTime } from '#platform/clock.ts'
import type { NodeExplanation } from '#wire/node/node-evidence.ts'
import type { ReportBody, StoryLine } from '#wire/node/report.ts'
import { whyOf, type DetailFacts } from './node-view.ts'

export const explanationView = (node: Node, facts: DetailFacts, entries: readonly StoryEntry[]): NodeExplanation => {
  const { report } = facts.observed
  const told = report === null ? [] : report.story.flatMap(toldLine)
  return {
    node: node.id,
    sentences: [...whyOf(node, facts), recoverySentence(facts), ...lastWord(report)],
    chain: causalChain(entries, told).map(({ atMs, ...link }) => ({ at: isoTime(atMs), ...link })),
    last_report_at: report === null ? null : boundedText(report.at, 32),
    next: nextCommands(node, facts.profile, facts.nowMs),
  }
}

const recoverySentence = ({ recoverability: { recoverable, why } }: DetailFacts): string =>
  recoverable
    ? 'Its recovery has been rehearsed: it would recover without an operator after losing its certificate.'
    : `It is not proven that it would recover without an operator after losing its certificate: ${why}.`

const toldLine = ({ at, place, event, code, text, times: count, correlation }: StoryLine): ToldLine[] => {
  const atMs = parseIsoTime(at)
  const remarks = [...(code === '' ? [] : [code]), ...(count > 1 ? [`${count} times`] : [])].join(', ')
  const what = `${place} ${event}: ${text}${remarks === '' ? '' : ` (${remarks})`}`
  return atMs === null ? [] : [{ atMs, what, correlation }]
}

/** What its agent last said was wrong, if nothing it said later makes up for that. */
const lastWord = (report: ReportBody | null): string[] => {
  const story = report === null ? [] : report.story
  const line = story.findLast(
    ({ event, place }, at) =>
      event === 'failed' && !story.slice(at + 1).some((later) => later.place === place && later.event === 'succeeded'),
  )
  if (line === undefined) return []
  const { text, next, at, class: failure } = line
  const named = failure === null ? '' : ` (${failure})`
  return [boundedText(`Its agent says: ${text}${named}, at ${at}. Next: ${next}`, 1024)]
}
