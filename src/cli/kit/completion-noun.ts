import { Argument, type Command } from 'commander'
import type { Cli } from './cli.ts'
import { shells } from './completion-script.ts'
import { performs, verb } from './verb.ts'

export const declareCompletion = (program: Command, cli: Cli): void => {
  const completion = verb(program, 'completion', 'Print a script that completes commands in your shell', [
    ['source <(muster completion bash)', 'or into /etc/bash_completion.d/muster'],
    ['muster completion zsh > "${fpath[1]}/_muster"', ''],
    ['muster completion fish > ~/.config/fish/completions/muster.fish', ''],
  ]).addArgument(new Argument('<shell>', 'which shell').choices(shells))
  performs(cli, completion, async () => (await import('./completion-verb.ts')).completionVerb)
}
