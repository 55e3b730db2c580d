import type { Command } from 'commander'
import type { Cli } from '#cli/kit/cli.ts'
import { noun, performs, verb } from '#cli/kit/verb.ts'

export const declareAlert = (program: Command, cli: Cli): void => {
  const alert = noun(program, 'alert', 'What a person should look at', [
    ['muster alert list', ''],
    ['muster alert ack 01JCQ7Z6W3M8X9Y0Z1A2B3C4D5 --note "on it"', ''],
  ])

  const list = verb(alert, 'list', 'List alerts, oldest first: what is wrong, with whom, since when', [
    ['muster alert list', 'what is not resolved'],
    ['muster alert list --all', 'the last of every kind and subject, resolved ones too'],
    ['muster alert list -o json', 'for scripts'],
  ]).option('--all', 'those that are resolved too')
  performs(cli, list, async () => (await import('./alert-list.ts')).alertList)

  const ack = verb(
    alert,
    'ack [id]',
    'Say that somebody looks after an alert; it resolves when what it is about is over',
    [
      ['muster alert ack 01JCQ7Z6W3M8X9Y0Z1A2B3C4D5', 'an id as alert list shows it'],
      ['muster alert ack 01JCQ7Z6W3M8X9Y0Z1A2B3C4D5 --note "replacing its disk"', ''],
      ['muster alert ack --kind superseded_by_hardware --note "power was lost"', 'every open alert of a kind'],
    ],
  )
    .option('--kind <kind>', 'instead of an id: every alert of this kind that is open now')
    .option('--note <text>', 'what is being done; goes into the journal')
  performs(cli, ack, async () => (await import('./alert-ack.ts')).alertAck)
}
