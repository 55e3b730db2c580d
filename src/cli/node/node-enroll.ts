import { type RegisterRequest, nodeApi } from '#wire/node/node-api.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import { nodeEnrollBatch } from './node-enroll-batch.ts'
import { nodeName } from '#cli/kit/node-name.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { renderFacts } from '#cli/kit/table.ts'

type EnrollOptions = GlobalOptions & {
  readonly mac?: readonly string[]
  readonly bmcSerial?: string
  readonly profile?: string
  readonly batch?: string
}

export const nodeEnroll = async (cli: Cli, options: EnrollOptions, id: string | undefined): Promise<void> => {
  if (options.batch !== undefined) {
    if (id !== undefined || options.mac !== undefined || options.bmcSerial !== undefined) {
      throw usageFailure('--batch takes nodes from its file only.', 'muster node enroll --help')
    }
    return nodeEnrollBatch(cli, options, options.batch)
  }
  if (id === undefined) throw usageFailure('Which node?', 'muster node enroll ID, or --batch FILE for many')

  const request: RegisterRequest = {
    id: nodeName(id),
    ...(options.profile === undefined ? {} : { profile: options.profile }),
    ...(options.mac === undefined ? {} : { macs: [...options.mac] }),
    ...(options.bmcSerial === undefined ? {} : { bmc_serial: options.bmcSerial }),
  }
  const node = await connect(cli, options).ask(nodeApi.register, {
    body: request,
    about: { ID: id, PROFILE: options.profile ?? 'PROFILE' },
  })
  const print = printer(cli, options)
  print.answer(node, () =>
    renderFacts([
      ['node', `${node.id} ${node.membership}`],
      ['profile', node.profile],
      ['hardware', [...node.hardware.macs, node.hardware.bmc_serial ?? ''].join(' ').trim() || 'none'],
    ]),
  )
  print.note(
    `next: muster token create --node ${node.id}; or, if its profile joins by hardware: muster ca bundle --join`,
  )
}
