import { type NodeExplanation } from '#wire/node/node-evidence.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { asCalled } from '#cli/kit/failure.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { printable } from '#cli/kit/printable.ts'
import { nodeApi } from '#wire/node/node-api.ts'

/** The story of a node: how it stands, what led there, and what a person could do. */
export const nodeExplain = async (cli: Cli, options: GlobalOptions, id: string): Promise<void> => {
  const told = await connect(cli, options).ask(nodeApi.explain, { params: { id }, about: { ID: id } })
  printer(cli, options).answer(told, () => explanationLines(told).map((line) => asCalled(line, cli.program)))
}

const explanationLines = (told: NodeExplanation): string[] => [
  ...told.sentences.map(printable),
  '',
  'What happened:',
  ...chainLines(told.chain),
  `  its agent last reported ${told.last_report_at ?? 'never'}`,
  ...(told.next.length === 0
    ? []
    : ['', 'What you could do:', ...told.next.map((command) => `  ${printable(command)}`)]),
]

/** The id of a story is said once, where it begins. */
const chainLines = (chain: NodeExplanation['chain']): string[] => {
  if (chain.length === 0) return ['  nothing is on record']
  let story: string | null = null
  return chain.map(({ at, what, who, correlation }) => {
    const begins = correlation !== null && correlation !== story
    story = correlation
    return printable(`  ${at}  ${what} (${who})${begins ? `  [${correlation}]` : ''}`)
  })
}
