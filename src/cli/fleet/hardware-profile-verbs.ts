import { type HardwareProfileView, hardwareApi } from '#wire/fleet/hardware-api.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { renderFacts, renderHeadedTable } from '#cli/kit/table.ts'

export const hardwareProfileList = async (cli: Cli, options: GlobalOptions): Promise<void> => {
  const answer = await connect(cli, options).ask(hardwareApi.profiles)
  const print = printer(cli, options)
  print.answer(answer, (paint) =>
    answer.hardware_profiles.length === 0
      ? []
      : renderHeadedTable(
          ['TAG', 'SKU', 'FIRMWARE', 'SLOTS', 'FURTHER TAGS', 'DESCRIPTION'],
          answer.hardware_profiles.map((profile) => [
            profile.tag,
            profile.sku,
            profile.firmware,
            String(profile.slots),
            profile.tags.join(', '),
            profile.description,
          ]),
          paint,
        ),
  )
  if (answer.hardware_profiles.length === 0) print.note('there are none; see: muster hardware-profile create --help')
}

type CreateOptions = GlobalOptions & {
  readonly firmware: string
  readonly sku: string
  readonly slots: string
  readonly tag?: readonly string[]
  readonly description?: string
}

export const hardwareProfileCreate = async (cli: Cli, options: CreateOptions, tag: string): Promise<void> => {
  const { firmware, sku, slots, tag: tags = [], description } = options
  if (!/^\d{1,2}$/.test(slots)) throw usageFailure(`--slots takes a number from 0 to 64, not ${slots}`)
  const body = { tag, firmware, sku, tags, slots: Number(slots), ...(description === undefined ? {} : { description }) }
  show(cli, options, await connect(cli, options).ask(hardwareApi.createProfile, { body, about: { TAG: tag } }))
}

export const hardwareProfileRemove = async (cli: Cli, options: GlobalOptions, tag: string): Promise<void> => {
  show(
    cli,
    options,
    await connect(cli, options).ask(hardwareApi.removeProfile, { params: { tag }, about: { TAG: tag } }),
  )
}

const show = (cli: Cli, options: GlobalOptions, profile: HardwareProfileView): void =>
  printer(cli, options).answer(profile, () =>
    renderFacts([
      ['tag', profile.tag],
      ['sku', profile.sku],
      ['firmware', profile.firmware],
      ['slots', String(profile.slots)],
      ['further tags', profile.tags.length === 0 ? 'none' : profile.tags.join(', ')],
    ]),
  )
