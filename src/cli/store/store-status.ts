// Where a store is, what is in it and which replicas are at it; and bringing its schema up to date.

import { storeStatus, type LeasedReplica, type StoreContent, type StoreStatus } from '#plane/store/copy/store-status.ts'
import type { Cli } from '#cli/kit/cli.ts'
import { printer } from '#cli/kit/print.ts'
import { withStore, type StoreOptions } from './store-run.ts'
import { renderFacts } from '#cli/kit/table.ts'
import { migrateStore, type Migrated } from '#plane/store/copy/migrate-store.ts'

export const storeStatusVerb = async (cli: Cli, options: StoreOptions): Promise<void> => {
  const status = await withStore(cli, options, 'The store cannot be looked at.', storeStatus)
  printer(cli, options).answer(bodyOf(status), () => renderFacts(factsOf(status)))
}

const bodyOf = (status: StoreStatus) => ({
  store: status.store,
  place: status.place,
  schema: status.schema,
  newest_schema: status.newestSchema,
  bytes: status.bytes,
  writable: status.writeFault === null,
  write_fault: status.writeFault,
  content: status.content,
  replicas: status.replicas.map(({ leaseMs, ...replica }) => ({ ...replica, lease_ms: leaseMs })),
  upgrade_waits_for: status.upgradeWaitsFor,
})

type Fact = readonly [name: string, value: string | readonly string[]]

const factsOf = (status: StoreStatus): Fact[] => [
  ['store', `${status.store} ${status.place}`],
  ['schema', schemaWords(status)],
  ['size', `${(status.bytes / 2 ** 20).toFixed(1)} MiB`],
  ['writable', status.writeFault === null ? 'yes' : `no: ${status.writeFault}`],
  ...(status.content === null ? [] : contentFacts(status.content)),
  ['planes', status.replicas.length === 0 ? 'none runs' : status.replicas.map(replicaWords)],
]

const schemaWords = ({ schema, newestSchema, upgradeWaitsFor }: StoreStatus): string => {
  if (schema === null) return `none; a plane, or muster store migrate, makes schema ${newestSchema}`
  if (schema === newestSchema) return `${schema}, the newest`
  const waits = upgradeWaitsFor.length === 0 ? '' : `, and the upgrade waits for ${upgradeWaitsFor.join(', ')} to stop`
  return `${schema}; this release knows ${newestSchema}${waits}`
}

const contentFacts = (content: StoreContent): Fact[] => {
  const nodes = Object.entries(content.nodes).filter(([, count]) => count > 0)
  return [
    ['domain', content.domain ?? 'none yet'],
    ['nodes', nodes.length === 0 ? 'none' : nodes.map(([kind, count]) => `${count} ${kind}`).join(', ')],
    ['tokens', String(content.tokens)],
    ['certificates', String(content.certificates)],
    ['denials', String(content.denials)],
    ['journal', `${content.entries} ${content.entries === 1 ? 'entry' : 'entries'}`],
    [
      'chains',
      content.chains.map(
        ({ chain, sequence, hash, writer }) =>
          `${chain} ${sequence} ${hash}${writer === null ? '' : `, written by replica ${writer}`}`,
      ),
    ],
  ]
}

const replicaWords = ({ number, name, version, leaseMs, leads }: LeasedReplica): string =>
  [
    `${number} ${name}`,
    ...(version === null ? [] : [`release ${version}`]),
    ...(leaseMs === null ? [] : [`lease for ${Math.ceil(leaseMs / 1000)}s`]),
    ...(leads ? ['leads'] : []),
  ].join(', ')

export const storeMigrate = async (cli: Cli, options: StoreOptions & { readonly dryRun?: boolean }): Promise<void> => {
  const dryRun = options.dryRun === true
  const done = await withStore(cli, options, 'Nothing was changed.', (config) => migrateStore(config, dryRun))
  printer(cli, options).answer({ from: done.from, to: done.to, dry_run: dryRun }, () => [sentence(done, dryRun)])
}

const sentence = ({ from, to }: Migrated, dryRun: boolean): string => {
  if (from === to) return `schema ${to} is the newest; there is nothing to do`
  const before = from === null ? 'no schema' : `schema ${from}`
  return dryRun ? `${before} would become schema ${to}; nothing was changed` : `${before} became schema ${to}`
}
