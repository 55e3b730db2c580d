import { Option, type Command } from 'commander'
import { roles } from '#domain/core/principal.ts'
import type { Cli } from '#cli/kit/cli.ts'
import { noun, performs, verb } from '#cli/kit/verb.ts'

export const declareKey = (program: Command, cli: Cli): void => {
  const key = noun(program, 'key', 'Operator keys: who may use the operator plane', [['muster key list', '']])
  const verbs = () => import('./key-verbs.ts')

  const create = verb(key, 'create <name>', 'Print a new key, alone on standard output; the only time it is shown', [
    ['(umask 077; muster key create alice --role operator > alice.key)', ''],
    ['muster --key-file alice.key node list', 'using it'],
    [
      '(umask 077; muster key create alice --role platform-admin --offline --data /srv/muster > alice.key)',
      'when every key is lost: on the host of the stopped plane, with its sealing key',
    ],
  ])
    .addOption(new Option('--role <role>', 'what it may do').choices(roles).makeOptionMandatory())
    .option('--offline', 'write it into the store itself, without a plane and without a key')
    .option('--store <sqlite|postgres>', 'with --offline: as for muster plane (MUSTER_STORE)')
    .option('--seal-key <file>', 'with --offline: as for muster plane (MUSTER_SEAL_KEY)')
  performs(cli, create, async () => (await verbs()).keyCreate)

  const list = verb(key, 'list', 'List keys; never the keys themselves', [['muster key list', '']])
  performs(cli, list, async () => (await verbs()).keyList)

  const revoke = verb(key, 'revoke <id>', 'Withdraw a key, at once', [
    ['muster key revoke 01JCQ7Z6W3M8', 'an id as key list shows it'],
  ])
  performs(cli, revoke, async () => (await verbs()).keyRevoke)
}
