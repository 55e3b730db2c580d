// `muster node enroll`: registers one node. Many from a file: enroll-batch.ts.

import { type NodeDetail, type RegisterRequest, nodeApi } from '#wire/node/node-api.ts'
import { nodeNamesApi } from '#wire/programs/names-api.ts'
import { settingsApi } from '#wire/settings/settings-api.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { usageFailure, Failure } from '#cli/kit/failure.ts'
import { nodeName } from '#cli/kit/arguments.ts'
import { connect, type OperatorClient } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { renderFacts } from '#cli/kit/table.ts'
import { nodeEnrollBatch } from './enroll-batch.ts'

type EnrollOptions = GlobalOptions & {
  readonly mac?: readonly string[]
  readonly bmcSerial?: string
  readonly profile?: string
  readonly batch?: string
  readonly tokens?: string
  readonly expires?: string
}

export const nodeEnroll = async (cli: Cli, options: EnrollOptions, id: string | undefined): Promise<void> => {
  if (options.batch !== undefined) {
    if (id !== undefined || options.mac !== undefined || options.bmcSerial !== undefined) {
      throw usageFailure('--batch takes nodes from its file only.', 'muster node enroll --help')
    }
    if (options.expires !== undefined && options.tokens === undefined)
      throw usageFailure('--expires goes with --tokens: without it no token is made.', 'muster node enroll --help')
    return nodeEnrollBatch(cli, options, options.batch)
  }
  if (options.tokens !== undefined || options.expires !== undefined)
    throw usageFailure('--tokens and --expires go with --batch.', 'For one node: muster token create --node ID')
  if (id === undefined) throw usageFailure('Which node?', 'muster node enroll ID, or --batch FILE for many')

  const request: RegisterRequest = {
    id: nodeName(id),
    ...(options.profile === undefined ? {} : { profile: options.profile }),
    ...(options.mac === undefined ? {} : { macs: [...options.mac] }),
    ...(options.bmcSerial === undefined ? {} : { bmc_serial: options.bmcSerial }),
  }
  const plane = connect(cli, options)
  const node = await plane.ask(nodeApi.register, {
    body: request,
    about: { ID: id, PROFILE: options.profile ?? 'PROFILE' },
  })
  const names = await namesOfBefore(plane, node)
  const print = printer(cli, options)
  print.answer(node, () =>
    renderFacts([
      ['node', `${node.id} ${node.state}`],
      ['profile', node.profile],
      ['hardware', [...node.hardware.macs, node.hardware.bmc_serial ?? ''].join(' ').trim() || 'none'],
      ...(names.length === 0 ? [] : [['names', `${names.join(', ')} (from before it was revoked)`] as const]),
    ]),
  )
  print.note(`next: ${await howToJoin(plane, node)}`)
}

/** A node that is registered anew still has them, unless another node has taken them meanwhile. */
const namesOfBefore = async (plane: OperatorClient, { id }: NodeDetail): Promise<readonly string[]> => {
  const answer = await plane.tryAsk(nodeNamesApi.names, { params: { id } })
  return answer instanceof Failure ? [] : answer.names.flatMap(({ name, derived }) => (derived ? [] : [name]))
}

const howToJoin = async (plane: OperatorClient, { id, profile: name }: NodeDetail): Promise<string> => {
  const profile = await plane.tryAsk(settingsApi.profile, { params: { name } })
  const methods = profile instanceof Failure ? ['token'] : profile.join.allOf
  if (methods.includes('token')) return `muster token create --node ${id}`
  return `its machine joins by its ${methods.join(' and ')}, with what this prints: muster domain join-string`
}
