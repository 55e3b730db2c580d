// `muster explain CODE`: what a node without a network said, decoded here; the plane only adds which node it was.

import type { Command } from 'commander'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { performs, documented } from '#cli/kit/verb.ts'
import { codeSentences, nextStepOf } from '#domain/recovery/short-code-words.ts'
import { decodeShortCode, nodeMark, type DecodedCode } from '#domain/recovery/short-code.ts'
import { settingsApi } from '#wire/settings/settings-api.ts'
import { Failure, fillIn, usageFailure } from '#cli/kit/failure.ts'
import { everyNode } from './node-list.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { printable } from '#cli/kit/printable.ts'

export const declareExplain = (explain: Command, cli: Cli): void => {
  documented(explain, [
    ['muster explain MX-1234-5678-9ABC', 'works without a plane; with one it names the node'],
  ]).argument('<code>')
  performs(cli, explain, explainCode)
}

type Who =
  | { readonly kind: 'found'; readonly nodes: readonly string[] }
  /** No plane could be asked. */
  | { readonly kind: 'unasked'; readonly why: string }

export const explainCode = async (cli: Cli, options: GlobalOptions, code: string): Promise<void> => {
  const facts = factsIn(code)
  const who: Who = facts.nodeMark === 0 ? { kind: 'found', nodes: [] } : await whoIs(cli, options, facts.nodeMark)
  const nodes = who.kind === 'found' ? who.nodes : []
  const next = nextFor(facts, nodes)
  const sentences = [...codeSentences(facts), whoSentence(facts, who, code.trim().replace(/\s+/g, '-'))]
  printer(cli, options).answer({ facts: bounded(facts), nodes, sentences, next }, () =>
    [...sentences, ...next.map((step) => `What to do: ${step}`)].map((line) => cli.hints.asCalled(printable(line))),
  )
}

const factsIn = (code: string): DecodedCode => {
  const parsed = decodeShortCode(code)
  switch (parsed.kind) {
    case 'code':
      return parsed.facts
    case 'mistyped':
      throw usageFailure(
        `${code} is not what the node said: a character is wrong, or two are swapped.`,
        'Ask for it again, four characters at a time; on the machine: muster agent explain',
      )
    case 'no-code':
      throw usageFailure(
        `${code} is no short code; one looks like MX-1234-5678-9ABC.`,
        'Ask for it again; on the machine: muster agent explain',
      )
  }
}

const whoIs = async (cli: Cli, options: GlobalOptions, mark: number): Promise<Who> => {
  try {
    const plane = connect(cli, options)
    const domain = await plane.ask(settingsApi.domain)
    const nodes = await everyNode(plane, {})
    return { kind: 'found', nodes: nodes.map(({ id }) => id).filter((id) => nodeMark(domain.name, id) === mark) }
  } catch (error) {
    if (error instanceof Failure) return { kind: 'unasked', why: error.message }
    throw error
  }
}

const whoSentence = ({ nodeMark: mark }: DecodedCode, who: Who, code: string): string => {
  if (mark === 0) return 'It has no identity yet, so the code names no node.'
  if (who.kind === 'unasked')
    return `Which node it was is not known here (${who.why}) Ask where the plane is: muster explain ${code}`
  const [first, ...others] = who.nodes
  if (first === undefined) return 'No node of this domain has this code: it is of another domain, or was removed.'
  return others.length === 0 ? `It is node ${first}.` : `It is one of the nodes ${who.nodes.join(', ')}.`
}

const nextFor = (facts: DecodedCode, nodes: readonly string[]): string[] => {
  const [only] = nodes.length === 1 ? nodes : []
  const steps = [
    nextStepOf(facts.class),
    ...(only === undefined ? [] : ['See what the plane knows: muster node explain ID']),
  ]
  return steps.map((step) => (only === undefined ? step : fillIn(step, { ID: only })))
}

/** JSON knows no infinity: an open end is null. */
const bounded = (facts: DecodedCode): object =>
  Object.fromEntries(
    Object.entries(facts).map(([name, value]) => [
      name,
      typeof value === 'object' && value !== null ? { from: finite(value.from), to: finite(value.to) } : value,
    ]),
  )

const finite = (value: number): number | null => (Number.isFinite(value) ? value : null)
