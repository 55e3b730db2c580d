// `muster key`: who may use the operator listener.

import { Option, type Command } from 'commander'
import { roles } from '#domain/core/principal.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { lists, noun, performs, verb } from '#cli/kit/verb.ts'
import type { Static } from 'typebox'
import { parseIsoTime } from '#platform/clock.ts'
import { formatDuration, parseDuration } from '#wire/core/duration.ts'
import { type KeyView, keyApi, longestKeyMs, shortestKeyMs } from '#wire/operators/key-api.ts'
import { formatAgo } from '#cli/kit/duration.ts'
import type { KeyEnd, OfflineOptions } from './key-create-offline.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { printable } from '#cli/kit/printable.ts'
import { showList, type Column, type ListOptions } from '#cli/kit/list.ts'
import type { Cell } from '#cli/kit/table.ts'

export const declareKey = (key: Command, cli: Cli): void => {
  noun(key, [['muster key list', '']])
  const create = verb(key, 'create <name>', 'Print a new key, alone on standard output; the only time it is shown', [
    ['(umask 077; muster key create alice --role operator > alice.key)', ''],
    ['muster --key-file alice.key node list', 'using it'],
    ['(umask 077; muster key create ci --role operator --expires 90d > ci.key)', 'or --expires 2030-01-31'],
    [
      '(umask 077; muster key create alice --role platform-admin --offline --data /srv/muster > alice.key)',
      'when every key is lost: on the host of the stopped plane, with its sealing key',
    ],
  ])
    .addOption(new Option('--role <role>', 'what it may do').choices(roles).makeOptionMandatory())
    .option('--expires <duration|date>', 'when it ends: 90d, or 2030-01-31 (default: it has no end)')
    .option('--offline', 'write it into the store itself, without a plane and without a key')
    .option('--store <sqlite|postgres>', 'with --offline: as for muster plane (MUSTER_STORE)')
    .option('--seal-key <file>', 'with --offline: as for muster plane (MUSTER_SEAL_KEY)')
    .option('--config <file>', 'with --offline: as for muster plane (MUSTER_CONFIG)')
  performs(cli, create, keyCreate)

  const list = verb(key, 'list', 'List keys; never the keys themselves', [['muster key list', '']])
  performs(cli, lists(list, keyColumns(0)), keyList)

  const revoke = verb(key, 'revoke <id>', 'Withdraw a key, at once', [
    ['muster key revoke 01JCQ7Z6W3M8', 'an id as key list shows it'],
  ])
  performs(cli, revoke, keyRevoke)
}

const keyCreate = async (
  cli: Cli,
  options: OfflineOptions & { readonly offline?: boolean; readonly expires?: string },
  name: string,
): Promise<void> => {
  const { role, offline, expires } = options
  const end = expires === undefined ? {} : endOf(expires)
  const answer =
    offline === true
      ? await (await import('./key-create-offline.ts')).keyMadeOffline(cli, options, { name, end })
      : await connect(cli, options).ask(keyApi.create, { body: { name, role, ...end } })
  const print = printer(cli, options)
  print.answer(answer, () => [printable(answer.secret)])
  const { id, name: called, expires_at: expiresAt } = answer.key
  const until = expiresAt === undefined ? '' : `, until ${expiresAt}`
  print.note(`key ${id} of ${called} with role ${answer.key.role}${until}; it is not shown again`)
  print.note('next: keep it in a file of mode 0600 and pass --key-file FILE or set MUSTER_KEY_FILE')
}

const midnight = '00:00:00Z'

/** A duration counts from now by the clock of the plane; a date is the first moment of that day in UTC. */
const endOf = (text: string): KeyEnd => {
  const afterMs = parseDuration(text)
  if (afterMs !== null) {
    if (afterMs >= shortestKeyMs && afterMs <= longestKeyMs) return { expires_ms: afterMs }
    throw usageFailure(
      `--expires ${text}: a key is made for a minute at least and ${formatDuration(longestKeyMs)} at most.`,
      'Write 90d, 12h, 2030-01-31 or 2030-01-31T12:00:00Z',
    )
  }
  const at = /^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T${midnight}` : text
  if (parseIsoTime(at) !== null) return { expires_at: at }
  throw usageFailure(
    `--expires ${text} is neither a duration nor a date.`,
    'Write 90d, 12h, 2030-01-31 or 2030-01-31T12:00:00Z',
  )
}

const keyList = async (cli: Cli, options: ListOptions): Promise<void> => {
  const answer = await connect(cli, options).ask(keyApi.list)
  const columns = keyColumns(cli.clock.nowMs())
  showList(cli, options, { items: answer.keys, columns, body: (keys) => ({ ...answer, keys }) })
}

type Key = Static<typeof KeyView>

const keyColumns = (nowMs: number): readonly Column<Key>[] => {
  const ago = (time: string) => formatAgo(parseIsoTime(time) ?? nowMs, nowMs)
  const isPast = (time: string): boolean => (parseIsoTime(time) ?? Infinity) <= nowMs
  return [
    { name: 'key', cell: ({ id }) => id },
    { name: 'name', cell: ({ name }) => name },
    { name: 'role', cell: ({ role }) => role },
    { name: 'created', cell: ({ created_at: at }) => ago(at), value: ({ created_at: at }) => at },
    { name: 'by', cell: ({ created_by: by }) => by },
    {
      name: 'expires',
      cell: ({ expires_at: at }) => (at === undefined ? 'never' : ago(at)),
      value: ({ expires_at: at }) => at ?? '',
    },
    { name: 'state', cell: (key) => stateOf(key, ago, isPast(key.expires_at ?? '')) },
  ]
}

const stateOf = ({ forged, revoked_at: revokedAt }: Key, ago: (time: string) => string, expired: boolean): Cell => {
  if (forged === true) return { text: 'forged, grants nothing', colour: 'red' }
  if (revokedAt !== null) return { text: `revoked ${ago(revokedAt)}`, colour: 'dim' }
  return expired ? { text: 'expired', colour: 'red' } : { text: 'valid', colour: 'green' }
}

const keyRevoke = async (cli: Cli, options: GlobalOptions, id: string): Promise<void> => {
  const key = await connect(cli, options).ask(keyApi.revoke, { params: { id } })
  printer(cli, options).answer(key, () => [`key ${printable(key.id)} of ${printable(key.name)} revoked`])
}
