import type { Command } from 'commander'
import type { Cli } from '#cli/kit/cli.ts'
import { performs, verb } from '#cli/kit/verb.ts'

export const declareExplain = (program: Command, cli: Cli): void => {
  const explain = verb(program, 'explain <code>', 'Say what the short code of a node without a network means', [
    ['muster explain MX-1234-5678-9ABC', 'works without a plane; with one it names the node'],
  ])
  performs(cli, explain, async () => (await import('./explain.ts')).explainCode)
}
