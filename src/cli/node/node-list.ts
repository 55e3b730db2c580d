// `muster node list`. A revoked node keeps its record until it is purged; the list leaves such records out unless they are asked for.

import type { Recoverability } from '#wire/node/node-evidence.ts'
import { type NodeView, nodeApi } from '#wire/node/node-api.ts'
import type { Cli } from '#cli/kit/cli.ts'
import { Failure } from '#cli/kit/failure.ts'
import { showList, type ListOptions } from '#cli/kit/list.ts'
import { connect, everyPage, type OperatorClient } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { nodeColumns } from './node-columns.ts'
import { filterNames, type NodeFilter } from './select-options.ts'
import { checkedName, checkedTag } from './target-nodes.ts'

type NodeListOptions = ListOptions &
  NodeFilter & {
    /** Revoked ones too. */
    readonly all?: boolean
    /** `true`: all of them, with the answer. */
    readonly recoverable?: 'yes' | 'no' | true
    readonly schedulable?: 'yes' | 'no'
  }

export const nodeList = async (cli: Cli, options: NodeListOptions, names: readonly string[]): Promise<void> => {
  const plane = connect(cli, options)
  const found = await everyNode(plane, options, names)
  const showsRevoked = options.all === true || options.state !== undefined
  const nodes = showsRevoked ? found : found.filter(({ state }) => state !== 'revoked')
  showList(cli, options, {
    items: nodes,
    columns: nodeColumns(cli.clock.nowMs()),
    body: (shown) => ({ nodes: shown }),
    ...usualColumns(options),
  })
  const print = printer(cli, options)
  if (options.recoverable !== undefined) print.note(shareText(await recoverability(plane)))
  const hidden = found.length - nodes.length
  if (hidden > 0) print.note(`${hidden} revoked not shown; with them: muster node list --all`)
  if (nodes.length > 0 || hidden > 0) return
  const filtered = names.length > 0 || [...filterNames, 'recoverable', 'schedulable'].some((name) => name in options)
  print.note(
    filtered ? 'no nodes match; all: muster node list' : 'no nodes; a first one: muster token create --node gpu-001',
  )
}

export const everyNode = async (
  plane: OperatorClient,
  options: Omit<NodeListOptions, keyof ListOptions>,
  names: readonly string[] = [],
): Promise<NodeView[]> => {
  const { state, profile, vcluster, schedulable, condition, connected, tag = [] } = options
  const recoverable = options.recoverable === true ? undefined : options.recoverable
  // By its old name: planes before 0.5 know no other.
  const old = { membership: state, profile, vcluster, schedulable, recoverable }
  const added = {
    condition,
    connected,
    ...joined('tag', tag.map(checkedTag)),
    ...joined('name', names.map(checkedName)),
  }
  const query = { ...old, ...added, limit: 1000 }
  try {
    return await everyPage(
      (after) => plane.ask(nodeApi.list, { query: { ...query, after } }),
      (page) => page.nodes,
    )
  } catch (error) {
    const isNew = Object.values(added).some((value) => value !== undefined)
    throw isNew && error instanceof Failure && error.code === 'REQUEST_INVALID' ? perhapsOlder(error) : error
  }
}

const joined = <N extends string>(name: N, words: readonly string[]) =>
  (words.length === 0 ? {} : { [name]: words.join(',') }) as { readonly [K in N]?: string }

/** A plane of the release before refuses what it does not know. */
const perhapsOlder = (failure: Failure): Failure =>
  new Failure({
    exit: failure.exit,
    code: failure.code,
    sentence: failure.message,
    detail: failure.detail,
    next: 'See muster node list --help. Names, --tag, --condition and --connected need a plane of 0.5: muster version',
  })

const recoverability = (plane: OperatorClient): Promise<Recoverability> => plane.ask(nodeApi.recoverability)

const shareText = ({ nodes, proven, why }: Recoverability): string => {
  const rest = why.map(({ why: reason, count }) => `${count} ${reason}`).join('; ')
  return `${proven} of ${nodes} proven recoverable${rest === '' ? '' : `; not: ${rest}`}`
}

const usualColumns = ({ recoverable, schedulable }: NodeListOptions): { readonly usual?: readonly string[] } => {
  if (recoverable !== undefined) return { usual: ['name', 'state', 'profile', 'recoverable', 'why'] }
  if (schedulable === undefined) return {}
  return { usual: ['name', 'state', 'vcluster', 'scheduling', 'allocations', 'reasons'] }
}
