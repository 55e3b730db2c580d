import type { Command } from 'commander'
import type { Cli } from '#cli/kit/cli.ts'
import { noun, performs, plans, verb } from '#cli/kit/verb.ts'

export const declareToken = (program: Command, cli: Cli): void => {
  const token = noun(program, 'token', 'Invitations for machines, each good for one enrollment', [
    ['muster token create --node gpu-001', ''],
  ])

  const create = verb(
    token,
    'create',
    'Print a join string, alone on standard output; the only time its secret is shown',
    [
      ['muster token create --node gpu-001', 'registers gpu-001 if it is not known'],
      ['muster token create --node gpu-001 --replace', 'for a machine that was reinstalled while active'],
      ['muster token create --profile mesh-paas --expires 1h', 'a token of the domain: whichever machine brings it'],
      ['muster token create --node gpu-001 | ssh gpu-001 sudo tee /etc/muster/join >/dev/null', ''],
    ],
  )
    .option('--node <id>', 'the node it is for; without it, a token of the domain')
    .option('--replace', 'may take the place of the node while it is active')
    .option('--expires <duration>', 'how long it is good for, such as 30m (default: the profile says; at most 24h)')
    .option('--profile <name>', "profile of the node it registers (default: the domain's)")
  performs(cli, create, async () => (await import('./token-create.ts')).tokenCreate)

  const list = verb(token, 'list', 'List tokens, newest first; never their secrets', [
    ['muster token list', ''],
    ['muster token list --node gpu-001', ''],
  ]).option('--node <id>', 'only tokens for this node')
  performs(cli, list, async () => (await import('./token-list.ts')).tokenList)

  const revoke = verb(token, 'revoke [id]', 'Withdraw a token that has not been used', [
    ['muster token revoke 01JCQ7Z6W3M8', 'an id as token list shows it'],
    ['muster token revoke 01JCQ7Z6W3M8 --plan', 'who could not join without it'],
  ])
  plans(revoke)
  performs(cli, revoke, async () => (await import('./token-revoke.ts')).tokenRevoke)
}
