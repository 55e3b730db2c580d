import type { Command } from 'commander'
import type { Cli } from '#cli/kit/cli.ts'
import { collect, noun, performs, verb } from '#cli/kit/verb.ts'

export const declareHardwareProfile = (program: Command, cli: Cli): void => {
  const profile = noun(program, 'hardware-profile', 'Kinds of machines, and what each can be sold as', [
    ['muster hardware-profile list', ''],
    ['muster node machine gpu-001', 'what a machine comes to, and what is missing'],
  ])
  const verbs = () => import('./hardware-profile-verbs.ts')

  const list = verb(profile, 'list', 'List hardware profiles', [['muster hardware-profile list', '']])
  performs(cli, list, async () => (await verbs()).hardwareProfileList)

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
  performs(cli, create, async () => (await verbs()).hardwareProfileCreate)

  const remove = verb(profile, 'remove <tag>', 'Machines keep the tag, which is one like any other from then on', [
    ['muster hardware-profile remove h100', ''],
  ])
  performs(cli, remove, async () => (await verbs()).hardwareProfileRemove)
}
