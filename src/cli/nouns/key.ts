import { Option, type Command } from 'commander'
import { roles } from '#domain/principal.ts'
import type { Cli } from '../cli.ts'
import { noun, performs, verb } from '../verb.ts'

export const declareKey = (program: Command, cli: Cli): void => {
  const key = noun(program, 'key', 'Operator keys: who may use the operator plane', [['muster key list', '']])
  const verbs = () => import('../key-verbs.ts')

  const create = verb(key, 'create <name>', 'Print a new key, alone on standard output; the only time it is shown', [
    ['(umask 077; muster key create alice --role operator > alice.key)', ''],
    ['muster --key-file alice.key node list', 'using it'],
  ]).addOption(new Option('--role <role>', 'what it may do').choices(roles).makeOptionMandatory())
  performs(cli, create, async () => (await verbs()).keyCreate)

  const list = verb(key, 'list', 'List keys; never the keys themselves', [['muster key list', '']])
  performs(cli, list, async () => (await verbs()).keyList)

  const revoke = verb(key, 'revoke <id>', 'Withdraw a key, at once', [
    ['muster key revoke 01JCQ7Z6W3M8', 'an id as key list shows it'],
  ])
  performs(cli, revoke, async () => (await verbs()).keyRevoke)
}
