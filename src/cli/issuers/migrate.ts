// `muster issuer migrate`: a profile goes from one issuer to another, step by step.

import type { Command } from 'commander'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { usageFailure, type About } from '#cli/kit/failure.ts'
import { showList, type Column, type ListOptions } from '#cli/kit/list.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { renderFacts } from '#cli/kit/table.ts'
import { lists, performs, verb } from '#cli/kit/verb.ts'
import { counted, durationWords } from '#domain/core/in-words.ts'
import { migrationApi, type MigrationPlan, type MigrationView } from '#wire/issuers/migration-api.ts'

export const declareMigrate = (issuer: Command, cli: Cli): void => {
  const migrate = verb(issuer, 'migrate <profile>', 'Take a profile from one issuer to another while its nodes work', [
    ['muster issuer migrate edge --to corp --plan', 'what it would meet; changes nothing'],
    ['muster issuer migrate edge --to corp', 'the new root is delivered, and nothing else changes'],
    ['muster issuer migrate edge', 'where it stands, and who is in the way'],
    [
      'muster issuer migrate edge --share 25',
      'a quarter of the nodes goes to the new issuer with its next certificates',
    ],
    ['muster issuer migrate edge --finish', 'the profile names the new issuer'],
    ['muster issuer migrate edge --retire', 'the old root is delivered no more'],
  ])
    .option('--to <issuer>', 'begin: the issuer that is to sign; built-in for the authority of the domain')
    .option('--plan', 'with --to: say what it would meet, and begin nothing')
    .option('--share <percent>', 'how many of the nodes go to the new issuer, from 1 to 100')
    .option('--finish', 'make the new issuer the one that the profile names')
    .option('--retire', 'end it: refused while a certificate of the old issuer has not expired')
    .option('--back', 'take the last step back; after --retire there is no way back')
    .option('--exclude <node...>', 'leave these nodes with the old issuer')
    .option('--include <node...>', 'take these nodes along again')
  performs(cli, migrate, issuerMigrate)

  const migrations = verb(issuer, 'migrations', 'List profiles on their way to another issuer', [
    ['muster issuer migrations', ''],
  ])
  performs(cli, lists(migrations, columns), issuerMigrations)
}

type MigrateOptions = GlobalOptions & {
  readonly to?: string
  readonly plan?: true
  readonly share?: string
  readonly finish?: true
  readonly retire?: true
  readonly back?: true
  readonly exclude?: readonly string[]
  readonly include?: readonly string[]
}

const steps = ['to', 'share', 'finish', 'retire', 'back', 'exclude', 'include'] as const

const issuerMigrate = async (cli: Cli, options: MigrateOptions, profile: string): Promise<void> => {
  const given = steps.filter((name) => options[name] !== undefined)
  if (given.length > 1)
    throw usageFailure(`One step at a time: ${given.map((name) => `--${name}`).join(' or ')}.`, usage)
  if (options.plan === true && options.to === undefined) throw usageFailure('--plan goes with --to.', usage)
  const plane = connect(cli, options)
  const asked = {
    params: { profile },
    about: { PROFILE: profile, ...(options.to !== undefined && { NAME: options.to, ISSUER: options.to }) },
  }
  if (options.plan === true && options.to !== undefined) {
    const planned = await plane.ask(migrationApi.plan, { ...asked, query: { to: options.to } })
    return printer(cli, options).answer(planned, () => planLines(planned))
  }
  const view = await takeStep(plane, options, asked)
  printer(cli, options).answer(view, () => viewLines(view))
}

const usage = 'muster issuer migrate --help'

type Asked = {
  readonly params: { readonly profile: string }
  readonly about: About
}

const takeStep = (plane: ReturnType<typeof connect>, options: MigrateOptions, asked: Asked): Promise<MigrationView> => {
  const { to, share, finish, retire, back, exclude, include } = options
  if (to !== undefined) return plane.ask(migrationApi.begin, { ...asked, body: { to } })
  if (share !== undefined) return plane.ask(migrationApi.share, { ...asked, body: { percent: percentOption(share) } })
  if (finish === true) return plane.ask(migrationApi.finish, { ...asked, body: {} })
  if (retire === true) return plane.ask(migrationApi.retire, { ...asked, body: {} })
  if (back === true) return plane.ask(migrationApi.back, { ...asked, body: {} })
  if (exclude !== undefined) return plane.ask(migrationApi.exclude, { ...asked, body: { nodes: [...exclude] } })
  if (include !== undefined) return plane.ask(migrationApi.include, { ...asked, body: { nodes: [...include] } })
  return plane.ask(migrationApi.show, asked)
}

const percentOption = (text: string): number => {
  const percent = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (percent < 1 || percent > 100) throw usageFailure('--share takes a whole number from 1 to 100.', usage)
  return percent
}

const issuerMigrations = async (cli: Cli, options: ListOptions): Promise<void> => {
  const { migrations: items } = await connect(cli, options).ask(migrationApi.list)
  showList(cli, options, { items, columns, body: (migrations) => ({ migrations }) })
}

const stageText = ({ stage, percent, ended_because: why }: MigrationView): string =>
  stage === 'share' ? `share ${percent} %` : stage === 'ended' ? `ended: ${why}` : stage

const awayText = ({ new_away_since: since, new_away_because: why, from }: MigrationView): string =>
  since === null ? '' : `away since ${since} (${why ?? '?'}): ${from} signs in its place`

const columns: readonly Column<MigrationView>[] = [
  { name: 'profile', cell: ({ profile }) => profile },
  { name: 'from', cell: ({ from }) => from },
  { name: 'to', cell: ({ to }) => to },
  { name: 'stage', cell: stageText },
  { name: 'active', cell: ({ progress }) => (progress === null ? '' : String(progress.active)) },
  { name: 'moved', cell: ({ progress }) => (progress === null ? '' : String(progress.moved)) },
  { name: 'unconfirmed', cell: ({ progress }) => (progress === null ? '' : String(progress.unconfirmed.length)) },
  { name: 'excluded', cell: ({ excluded }) => String(excluded.length) },
  { name: 'new-issuer', cell: awayText },
]

const named = (nodes: readonly string[]): string =>
  nodes.length === 0 ? 'none' : `${nodes.length}: ${nodes.join(', ')}`

const viewLines = (view: MigrationView): readonly string[] => {
  const { profile, from, to, progress, excluded, by, since } = view
  return renderFacts([
    ['profile', profile],
    ['from', from],
    ['to', to],
    ['stage', `${stageText(view)}, since ${since} by ${by}`],
    ['excluded', named(excluded)],
    ...(view.new_away_since === null ? [] : [['new issuer', awayText(view)] as const]),
    ...(progress === null
      ? []
      : ([
          ['active', counted(progress.active, 'node')],
          ['moved', `${progress.moved} have their newest certificate of ${to}`],
          ['roots', progress.roots_delivered ? 'delivered' : 'the set is full: they are not delivered'],
          ['unconfirmed', named(progress.unconfirmed)],
          ['older agents', named(progress.older_agents)],
          [`of ${from}`, named(progress.under_old)],
        ] as const)),
  ])
}

const planLines = (plan: MigrationPlan): readonly string[] => [
  ...renderFacts([
    ['profile', plan.profile],
    ['from', plan.from],
    ['to', plan.to],
    ['active', counted(plan.active, 'node')],
    ['older agents', named(plan.older_agents)],
    [`of ${plan.from}`, counted(plan.under_old, 'node')],
    ['lifetime', durationWords(plan.lifetime_ms)],
  ]),
  ...plan.notes.map((note) => `- ${note}`),
]
