import { ProfileBody, settingsApi } from '#wire/settings/settings-api.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { formatDuration } from '#cli/kit/duration.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { withPlan, type PlanOptions } from '#cli/plans/plan-run.ts'
import { printer } from '#cli/kit/print.ts'
import { parseSettings, settingLines } from '#cli/kit/settings.ts'
import { renderFacts, renderHeadedTable } from '#cli/kit/table.ts'

export const profileList = async (cli: Cli, options: GlobalOptions): Promise<void> => {
  const answer = await connect(cli, options).ask(settingsApi.profiles)
  printer(cli, options).answer(answer, (paint) =>
    renderHeadedTable(
      ['PROFILE', 'JOIN', 'LIFETIME', 'KEY', 'DESCRIPTION'],
      answer.profiles.map((profile) => [
        profile.name,
        profile.join.allOf.join('+'),
        formatDuration(profile.certificate.lifetimeMs),
        profile.keyStorage,
        profile.description,
      ]),
      paint,
    ),
  )
}

export const profileShow = async (cli: Cli, options: GlobalOptions, name: string): Promise<void> => {
  const profile = await connect(cli, options).ask(settingsApi.profile, { params: { name } })
  printer(cli, options).answer(profile, () => renderFacts(settingLines(profile)))
}

export const profileCreate = async (
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
  printer(cli, options).answer(profile, () => renderFacts(settingLines(profile)))
}

export const profileSet = withPlan(
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
    printer(cli, options).answer(profile, () => renderFacts(settingLines(profile)))
  },
)

const changeOf = (name: string | undefined, pairs: readonly string[]) => {
  if (name === undefined || pairs.length === 0) {
    throw usageFailure('Which profile, and what of it?', 'muster profile set NAME KEY=VALUE, or --apply PLAN')
  }
  return { profile: name, set: parseSettings(ProfileBody, pairs) }
}
