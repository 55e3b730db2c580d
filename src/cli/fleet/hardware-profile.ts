// `muster hardware-profile`: kinds of machines, and what each is sold as.

import type { Command } from 'commander'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { collect, lists, noun, performs, verb } from '#cli/kit/verb.ts'
import { type HardwareProfileView, hardwareApi } from '#wire/fleet/hardware-api.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { showList, type Column, type ListOptions } from '#cli/kit/list.ts'
import { renderFacts } from '#cli/kit/table.ts'

export const declareHardwareProfile = (profile: Command, cli: Cli): void => {
  noun(profile, [
    ['muster hardware-profile list', ''],
    ['muster node machine gpu-001', 'what a machine comes to, and what is missing'],
  ])
  const list = verb(profile, 'list', 'List hardware profiles', [['muster hardware-profile list', '']])
  performs(cli, lists(list, columns), hardwareProfileList)

  const create = verb(
    profile,
    'create <tag>',
    'A new kind; machines with the tag, the firmware, evidence that they are ready and enough slots have the SKU',
    [
      ['muster hardware-profile create h100 --firmware slice-vm --slots 8 --sku h100-slice', ''],
      ['muster hardware-profile create a100 --firmware baremetal --tag nvlink --slots 1 --sku a100-metal', ''],
    ],
  )
    .requiredOption('--firmware <name>', 'the firmware profile a machine has to run')
    .requiredOption('--sku <name>', 'what it is sold as')
    .requiredOption('--slots <number>', 'how many approved slots it has to have')
    .option('--tag <tag>', 'a further tag it has to carry; may be repeated', collect)
    .option('--description <text>', 'for people')
  performs(cli, create, hardwareProfileCreate)

  const remove = verb(profile, 'remove <tag>', 'Remove a hardware profile; machines keep its tag as an ordinary one', [
    ['muster hardware-profile remove h100', ''],
  ])
  performs(cli, remove, hardwareProfileRemove)
}

const hardwareProfileList = async (cli: Cli, options: ListOptions): Promise<void> => {
  const answer = await connect(cli, options).ask(hardwareApi.profiles)
  const { hardware_profiles: items } = answer
  showList(cli, options, { items, columns, body: (shown) => ({ ...answer, hardware_profiles: shown }) })
  if (items.length === 0) printer(cli, options).note('there are none; see: muster hardware-profile create --help')
}

const columns: readonly Column<HardwareProfileView>[] = [
  { name: 'tag', cell: ({ tag }) => tag },
  { name: 'sku', cell: ({ sku }) => sku },
  { name: 'firmware', cell: ({ firmware }) => firmware },
  { name: 'slots', cell: ({ slots }) => String(slots), value: ({ slots }) => slots },
  { name: 'further-tags', cell: ({ tags }) => tags.join(', ') },
  { name: 'description', cell: ({ description }) => description },
]

type CreateOptions = GlobalOptions & {
  readonly firmware: string
  readonly sku: string
  readonly slots: string
  readonly tag?: readonly string[]
  readonly description?: string
}

const hardwareProfileCreate = async (cli: Cli, options: CreateOptions, tag: string): Promise<void> => {
  const { firmware, sku, slots, tag: tags = [], description } = options
  if (!/^\d{1,2}$/.test(slots)) throw usageFailure(`--slots takes a number from 0 to 64, not ${slots}`)
  const body = { tag, firmware, sku, tags, slots: Number(slots), ...(description === undefined ? {} : { description }) }
  show(cli, options, await connect(cli, options).ask(hardwareApi.createProfile, { body, about: { TAG: tag } }))
}

const hardwareProfileRemove = async (cli: Cli, options: GlobalOptions, tag: string): Promise<void> => {
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
