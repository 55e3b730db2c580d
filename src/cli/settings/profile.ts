// `muster profile`: named policies.

import type { Command } from 'commander'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { lists, noun, performs, plans, verb } from '#cli/kit/verb.ts'
import type { Static } from 'typebox'
import { ProfileBody, settingsApi, type ProfileView } from '#wire/settings/settings-api.ts'
import { formatDuration } from '#wire/core/duration.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { withPlan, type PlanOptions } from '#cli/plans/plan.ts'
import { printer } from '#cli/kit/print.ts'
import { printable } from '#cli/kit/printable.ts'
import { noEffectNote, parseSettings, settingLines } from '#cli/kit/settings.ts'
import { showList, type Column, type ListOptions } from '#cli/kit/list.ts'
import { renderFacts } from '#cli/kit/table.ts'

export const declareProfile = (profile: Command, cli: Cli): void => {
  noun(profile, [['muster profile list', '']])
  const list = verb(profile, 'list', 'List profiles', [['muster profile list', '']])
  performs(cli, lists(list), profileList)

  const show = verb(profile, 'show <name>', 'Show a profile, as profile set takes it', [
    ['muster profile show gpu-cloud', ''],
  ])
  performs(cli, show, profileShow)

  const create = verb(profile, 'create <name> [settings...]', 'Create a profile from another one', [
    ['muster profile create short --from gpu-cloud certificate.lifetimeMs=1h', ''],
  ]).option('--from <name>', "profile to start from (default: the domain's)")
  performs(cli, create, profileCreate)

  const set = verb(profile, 'set [name] [settings...]', 'Change a profile; nodes take it up at their next renewal', [
    ['muster profile set gpu-cloud certificate.lifetimeMs=12h', 'durations: 30m, 24h, 3d'],
    ['muster profile set gpu-cloud onActiveConflict=reject', ''],
    ['muster profile set hpc-diskless probeSilenceMs=60s', 'how long a silent node keeps its identity'],
    ['muster profile set gpu-cloud certificate.keyTypes=p256,p384', 'lists with commas'],
    [
      'muster profile set gpu-cloud recovery.mode=deny --plan',
      'which nodes could no longer recover without an operator',
    ],
  ])
  plans(set)
  performs(cli, set, profileSet)

  const remove = verb(profile, 'delete <name>', 'Delete a profile that nothing uses', [
    ['muster profile delete short', 'refused while nodes, unused tokens or the default of the domain use it'],
    ['muster node list --profile short', 'the nodes under it'],
  ])
  performs(cli, remove, profileDelete)
}

const profileList = async (cli: Cli, options: ListOptions): Promise<void> => {
  const answer = await connect(cli, options).ask(settingsApi.profiles)
  const mark = (profile: string, setting: string): string =>
    answer.no_effect_yet?.[profile]?.includes(setting) === true ? ' (no effect yet)' : ''
  const columns: readonly Column<(typeof answer.profiles)[number]>[] = [
    { name: 'profile', cell: ({ name }) => name },
    { name: 'join', cell: ({ name, join }) => join.allOf.join('+') + mark(name, 'join.allOf') },
    {
      name: 'lifetime',
      cell: ({ certificate }) => formatDuration(certificate.lifetimeMs),
      value: ({ certificate }) => certificate.lifetimeMs,
    },
    { name: 'key', cell: ({ name, keyStorage }) => keyStorage + mark(name, 'keyStorage') },
    { name: 'description', cell: ({ description }) => description },
  ]
  showList(cli, options, { items: answer.profiles, columns, body: (profiles) => ({ ...answer, profiles }) })
}

type ProfileShown = Static<typeof ProfileView>

/** The mark is a remark: every line of the answer is one that `profile set` takes. */
const show = (cli: Cli, options: GlobalOptions, profile: ProfileShown): void => {
  const { no_effect_yet: names, ...settings } = profile
  const print = printer(cli, options)
  print.answer(profile, () => renderFacts(settingLines(settings)))
  const note = noEffectNote(names)
  if (note !== null) print.note(note)
}

const profileShow = async (cli: Cli, options: GlobalOptions, name: string): Promise<void> => {
  const profile = await connect(cli, options).ask(settingsApi.profile, { params: { name } })
  show(cli, options, profile)
}

const profileCreate = async (
  cli: Cli,
  options: GlobalOptions & { readonly from?: string },
  name: string,
  pairs: readonly string[],
): Promise<void> => {
  const profile = await connect(cli, options).ask(settingsApi.createProfile, {
    body: {
      name,
      ...(options.from === undefined ? {} : { from: options.from }),
      ...(pairs.length === 0 ? {} : { set: parseSettings(ProfileBody, pairs) }),
    },
    about: { NAME: name },
  })
  show(cli, options, profile)
}

const profileSet = withPlan(
  'change-profile',
  (_options: PlanOptions, name: string | undefined, pairs: readonly string[]) => ({
    kind: 'change-profile' as const,
    ...changeOf(name, pairs),
  }),
  async (cli: Cli, options: PlanOptions, given: string | undefined, pairs: readonly string[]) => {
    const { profile: name, set } = changeOf(given, pairs)
    const profile = await connect(cli, options).ask(settingsApi.changeProfile, {
      params: { name },
      body: { set },
      about: { NAME: name },
    })
    show(cli, options, profile)
  },
)

const changeOf = (name: string | undefined, pairs: readonly string[]) => {
  if (name === undefined || pairs.length === 0) {
    throw usageFailure('Which profile, and what of it?', 'muster profile set NAME KEY=VALUE, or --apply PLAN')
  }
  return { profile: name, set: parseSettings(ProfileBody, pairs) }
}

const profileDelete = async (cli: Cli, options: GlobalOptions, name: string): Promise<void> => {
  const about = { NAME: name, PROFILE: name }
  const deleted = await connect(cli, options).ask(settingsApi.deleteProfile, { params: { name }, about })
  printer(cli, options).answer(deleted, () => [`profile ${printable(deleted.name)} deleted`])
}
