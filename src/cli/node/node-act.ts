// Verbs that change nodes and leave their identity alone, or let them back.

import { provisioningStates } from '#domain/core/node.ts'
import { hardwareApi, type MachineView } from '#wire/fleet/hardware-api.ts'
import { schedulingApi, type HealthRequest } from '#wire/fleet/scheduling-api.ts'
import { vclusterApi } from '#wire/fleet/vcluster-api.ts'
import { nodeActionApi } from '#wire/node/node-action-api.ts'
import type { NodeDetail } from '#wire/node/node-api.ts'
import type { NodeChangeBody } from '#wire/plans/node-changes.ts'
import { tagFrom, tagRule } from '#cli/kit/arguments.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { Failure, usageFailure } from '#cli/kit/failure.ts'
import { connect, type OperatorClient } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { renderFacts } from '#cli/kit/table.ts'
import { changeAll } from './ask-each.ts'
import { showMachine } from './node-machine.ts'
import { schedulingText } from './node-show.ts'
import { changing, onNodes, type NodeVerbOptions } from './on-nodes.ts'

type Ask<O, T> = (plane: OperatorClient, options: O, id: string) => Promise<T | Failure>

/** What changes the state of nodes: of one id all that is said of its state, of several a line each. */
const changeState = <O extends NodeVerbOptions>(
  verb: string,
  changeOf: (options: O) => NodeChangeBody,
  ask: Ask<O, NodeDetail>,
) =>
  onNodes<O>({
    verb,
    kind: 'change-nodes',
    actionOn: changing(changeOf),
    onIds: async (cli, options, ids) => {
      const [id, ...more] = ids
      if (id === undefined || more.length > 0) {
        return changeAll(
          cli,
          options,
          ids,
          (plane, one) => ask(plane, options, one),
          (node) => [node.state, schedulingText(node.scheduling)],
        )
      }
      const answer = await ask(connect(cli, options), options, id)
      if (answer instanceof Failure) throw answer
      showState(cli, options, answer)
    },
  })

const plainChange = (verb: 'undrain' | 'release' | 'approve' | 'deny') =>
  changeState(
    verb,
    () => ({ verb }),
    (plane, _options, id) => plane.tryAsk(nodeActionApi[verb], { params: { id }, about: { ID: id } }),
  )

export const nodeUndrain = plainChange('undrain')
export const nodeRelease = plainChange('release')
export const nodeApprove = plainChange('approve')
export const nodeDeny = plainChange('deny')

export const nodeDrain = changeState(
  'drain',
  ({ done }: NodeVerbOptions & { readonly done?: boolean }) => ({ verb: done === true ? 'drained' : 'drain' }),
  (plane, { done }, id) =>
    plane.tryAsk(nodeActionApi.drain, { params: { id }, body: done === true ? { done } : {}, about: { ID: id } }),
)

type HealthOptions = NodeVerbOptions & {
  readonly unhealthy?: boolean
  readonly ok?: boolean
  readonly reason?: string
}

const healthIn = ({ unhealthy = false, ok = false, reason }: HealthOptions): HealthRequest => {
  if (unhealthy === ok) throw usageFailure('Say either --unhealthy or --ok.', `muster node health ID --ok`)
  if (ok) return { state: 'healthy' }
  if (reason !== undefined) return { state: 'unhealthy', reason }
  throw usageFailure('An unhealthy node has a reason.', `muster node health ID --unhealthy --reason REASON`)
}

export const nodeHealth = changeState<HealthOptions>(
  'health',
  (options) => ({ verb: 'health', unhealthy: healthIn(options).reason ?? null }),
  (plane, options, id) =>
    plane.tryAsk(schedulingApi.reportHealth, { params: { id }, body: healthIn(options), about: { ID: id } }),
)

type ProvisioningOptions = NodeVerbOptions & { readonly detail?: string }

/** For adapters, and for people who stand in for one. The last word is the state. */
export const nodeProvisioning = (cli: Cli, options: ProvisioningOptions, words: readonly string[]): Promise<void> => {
  const given = options.apply === undefined ? words.at(-1) : undefined
  const state = provisioningStates.find((one) => one === given) ?? null
  if (options.apply === undefined && state === null && given !== 'none') {
    const states = `${provisioningStates.join(', ')}, or none`
    throw usageFailure(given === undefined ? `Which state? ${states}.` : `${given} is not one of ${states}.`)
  }
  const detail = options.detail === undefined ? {} : { detail: options.detail }
  const change = changeState<ProvisioningOptions>(
    'provisioning',
    () => ({ verb: 'provisioning', state, ...detail }),
    (plane, _options, id) =>
      plane.tryAsk(hardwareApi.reportProvisioning, { params: { id }, body: { state, ...detail }, about: { ID: id } }),
  )
  return change(cli, options, given === undefined ? words : words.slice(0, -1))
}

type TagOptions = NodeVerbOptions & { readonly add?: readonly string[]; readonly remove?: readonly string[] }

const tagsIn = ({ add = [], remove = [] }: TagOptions) => {
  if (add.length + remove.length === 0) throw usageFailure('name at least one tag: --add TAG or --remove TAG')
  return { add: add.map(checkedTag), remove: remove.map(checkedTag) }
}

const checkedTag = (given: string): string => {
  const tag = tagFrom(given)
  if (tag !== null) return tag
  throw usageFailure(`${given} is not a tag.`, `Write KEY or KEY=VALUE: ${tagRule}, a letter or digit first and last`)
}

export const nodeTag = onNodes<TagOptions>({
  verb: 'tag',
  kind: 'change-nodes',
  actionOn: changing((options) => ({ verb: 'tag', ...tagsIn(options) })),
  onIds: async (cli, options, ids) => {
    const body = tagsIn(options)
    const ask = (plane: OperatorClient, id: string) =>
      plane.tryAsk(hardwareApi.tag, { params: { id }, body, about: { ID: id } })
    const [id, ...more] = ids
    if (id === undefined || more.length > 0) return changeAll<MachineView>(cli, options, ids, ask, tagWords)
    const answer = await ask(connect(cli, options), id)
    if (answer instanceof Failure) throw answer
    showMachine(cli, options, answer)
  },
})

const tagWords = ({ tags, sku }: MachineView) =>
  [tags.length === 0 ? 'no tags' : tags.join(', '), sku === null ? '' : `sku ${sku}`] as const

type To = NodeVerbOptions & { readonly to?: string }
type Force = NodeVerbOptions & { readonly force?: boolean }

const forced = ({ force }: Force) => (force === true ? { force } : {})

/** Not a required option: `--apply` takes a plan that says it. */
const destinationIn = ({ to }: To, verb: string): string => {
  if (to === undefined) throw usageFailure('Where to?', `muster node ${verb} ID --to VCLUSTER`)
  return to
}

const changePlace = <O extends NodeVerbOptions>(
  verb: string,
  changeOf: (options: O) => NodeChangeBody,
  ask: Ask<O, NodeDetail>,
) =>
  onNodes<O>({
    verb,
    kind: 'change-nodes',
    actionOn: changing(changeOf),
    onIds: (cli, options, ids) =>
      changeAll(
        cli,
        options,
        ids,
        (plane, id) => ask(plane, options, id),
        ({ vcluster, scheduling }) => [vcluster === null ? 'in no vcluster' : `in ${vcluster}`, scheduling.state],
      ),
  })

export const nodeAssign = changePlace<To>(
  'assign',
  (options) => ({ verb: 'assign', to: destinationIn(options, 'assign') }),
  (plane, options, id) => {
    const body = { to: destinationIn(options, 'assign') }
    return plane.tryAsk(vclusterApi.assign, { params: { id }, body, about: { ID: id } })
  },
)

export const nodeMove = changePlace<To & Force>(
  'move',
  (options) => ({ verb: 'move', to: destinationIn(options, 'move'), ...forced(options) }),
  (plane, options, id) => {
    const body = { to: destinationIn(options, 'move'), ...forced(options) }
    return plane.tryAsk(vclusterApi.move, { params: { id }, body, about: { ID: id } })
  },
)

export const nodeUnassign = changePlace<Force>(
  'unassign',
  (options) => ({ verb: 'unassign', ...forced(options) }),
  (plane, options, id) =>
    plane.tryAsk(vclusterApi.unassign, { params: { id }, body: forced(options), about: { ID: id } }),
)

type SettleOptions = NodeVerbOptions & { readonly reason?: string }

/** Not a required option: `--apply` takes a plan that says it. */
const reasonIn = ({ reason }: SettleOptions): string => {
  if (reason === undefined) throw usageFailure('Why?', 'muster node settle ID --reason REASON')
  return reason
}

export const nodeSettle = changeState<SettleOptions>(
  'settle',
  (options) => ({ verb: 'settle', reason: reasonIn(options) }),
  (plane, options, id) =>
    plane.tryAsk(nodeActionApi.settle, { params: { id }, body: { reason: reasonIn(options) }, about: { ID: id } }),
)

const showState = (cli: Cli, options: GlobalOptions, node: NodeDetail): void => {
  printer(cli, options).answer(node, () =>
    renderFacts([
      ['node', node.id],
      ['state', node.state],
      ['scheduling', schedulingText(node.scheduling)],
      ['why', node.why],
    ]).map((line) => cli.hints.asCalled(line)),
  )
}
