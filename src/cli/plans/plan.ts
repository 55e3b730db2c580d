// `muster plan`, and plan before harm: `--plan` of other commands shows what they would do, `--apply PLAN` does what was shown.

import type { Command } from 'commander'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { noun, performs, verb } from '#cli/kit/verb.ts'
import { counted } from '#domain/core/in-words.ts'
import type { PlanAction } from '#domain/plans/plan.ts'
import { type PlanApplied, type PlanView, type PlanActionBody, planApi } from '#wire/plans/plan-api.ts'
import { formatSpan } from '#cli/kit/duration.ts'
import { withElapsed } from '#cli/kit/elapsed.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { Failure, usageFailure } from '#cli/kit/failure.ts'
import { connect, type OperatorClient } from '#cli/kit/operator-client.ts'
import { type Paint, printer } from '#cli/kit/print.ts'
import { receiptProgress } from '#cli/revocation/receipt-lines.ts'
import { renderFacts, renderHeadedTable, type Cell } from '#cli/kit/table.ts'
import { formatDuration } from '#wire/core/duration.ts'

export const declarePlan = (plan: Command, cli: Cli): void => {
  noun(plan, [
    ['muster node revoke gpu-001 gpu-002 --reason stolen --plan', 'shows it'],
    ['muster plan apply 01JCQ7Z6W3M8X9Y0Z1A2B3C4D5', 'does it, unless something has changed'],
  ])
  const show = verb(plan, 'show <id>', 'Show a plan', [['muster plan show 01JCQ7Z6W3M8X9Y0Z1A2B3C4D5', '']])
  performs(cli, show, showPlan)

  const apply = verb(plan, 'apply <id>', 'Apply a plan; refused with what changed, if anything has', [
    ['muster plan apply 01JCQ7Z6W3M8X9Y0Z1A2B3C4D5', ''],
  ])
  performs(cli, apply, (used: Cli, options: GlobalOptions, id: string) => requestApply(used, options, id, null))
}

export type PlanOptions = GlobalOptions & { readonly plan?: boolean; readonly apply?: string; readonly yes?: boolean }

/** Long for whom it concerns: every node is a transaction of its own. */
const timeoutMs = 600_000

/** What a command does when neither is asked for is `otherwise`. */
export const withPlan =
  <O extends PlanOptions, A extends readonly unknown[]>(
    kind: PlanAction['kind'],
    actionOf: (options: O, ...args: A) => PlanActionBody,
    otherwise: (cli: Cli, options: O, ...args: A) => Promise<void>,
  ) =>
  async (cli: Cli, options: O, ...args: A): Promise<void> => {
    if (await givenPlan(cli, options, kind, args)) return
    if (options.plan === true) return planOrDo(cli, options, [actionOf(options, ...args)])
    return otherwise(cli, options, ...args)
  }

/** Applies the plan of `--apply`; false: none is given. */
export const givenPlan = async (
  cli: Cli,
  options: PlanOptions,
  kind: PlanAction['kind'],
  args: readonly unknown[],
): Promise<boolean> => {
  if (options.plan === true && (options.apply !== undefined || options.yes === true)) {
    throw usageFailure(`--plan shows and ${options.yes === true ? '--yes' : '--apply'} does: give one of them.`)
  }
  if (options.apply === undefined) return false
  if (saysWhat(options, args)) {
    const why = 'A plan says already what is to be done, to whom and why: --apply takes no more than its id.'
    throw usageFailure(why, `See it: muster plan show ${options.apply}; do it: muster plan apply ${options.apply}`)
  }
  await requestApply(cli, options, options.apply, kind)
  return true
}

/** Options beside the nodes themselves that a plan has settled already. */
const settled = [
  ...[
    'reason',
    'reasonCode',
    'force',
    'compromised',
    'to',
    'add',
    'remove',
    'unhealthy',
    'ok',
    'detail',
    'done',
    'now',
    'back',
    'firmware',
    'slot',
    'removeSlot',
    'ready',
    'evidence',
  ],
  ...['from', 'state', 'profile', 'vcluster', 'condition', 'tag', 'connected'],
]

/** Who names another node beside a plan would otherwise do harm to one he has not named. */
const saysWhat = (options: object, args: readonly unknown[]): boolean =>
  args.some((arg) => (Array.isArray(arg) ? arg.length > 0 : arg !== undefined)) ||
  settled.some((name) => name in options)

/**
 * Shows what the actions would do; with `--yes`, does it. A script that takes a plan for the deed would be wrong: unless it has asked
 * for one, its exit code says so.
 */
export const planOrDo = async (cli: Cli, options: PlanOptions, actions: readonly PlanActionBody[]): Promise<void> => {
  const plane = connect(cli, options)
  const planned: PlanView[] = []
  for (const action of actions) planned.push(await computed(cli, plane, action))
  if (options.yes === true) return applyAll(cli, options, plane, planned)
  printPlans(cli, options, planned)
  if (options.plan !== true) cli.exit.finish(exitCodes.onlyPlanned)
}

/** As `planOrDo` with `--yes`, of one action. Returns the plan that was applied. */
export const planAndDo = async (cli: Cli, options: PlanOptions, action: PlanActionBody): Promise<PlanView> => {
  const plane = connect(cli, options)
  const { id } = await computed(cli, plane, action)
  return (await askApply(cli, plane, id)).plan
}

/** Plans that were made now. */
export const printPlans = (cli: Cli, options: GlobalOptions, planned: readonly PlanView[]): void => {
  const print = printer(cli, options)
  print.answer(planned.length === 1 ? planned[0] : { plans: planned }, (paint) =>
    planned.flatMap((plan) => planLines(plan, paint)).map((line) => cli.hints.asCalled(line)),
  )
  for (const { id, expires_at: until } of planned) {
    print.note(`nothing was done; to do this, until ${until}: muster plan apply ${id}`)
  }
}

const computed = async (cli: Cli, plane: OperatorClient, action: PlanActionBody): Promise<PlanView> => {
  const about = 'nodes' in action ? { ID: action.nodes?.[0] ?? 'ID' } : {}
  const plan = await withElapsed(cli, 'looking for what it concerns', () =>
    plane.tryAsk(planApi.compute, { body: { action }, about, timeoutMs }),
  )
  if (!(plan instanceof Failure)) return plan
  throw 'select' in action && plan.code === 'REQUEST_INVALID' ? perhapsOlder(plan) : plan
}

/** A plane of the release before refuses what it does not know. */
const perhapsOlder = ({ exit, code, message, detail }: Failure): Failure =>
  new Failure({
    ...{ exit, code, detail, sentence: message },
    next: 'Selectors need a plane of 0.5: compare muster version, here and on the plane. Ids work with any',
  })

const showPlan = async (cli: Cli, options: GlobalOptions, id: string): Promise<void> => {
  const plan = await askPlan(cli, options, id)
  printer(cli, options).answer(plan, (paint) => planLines(plan, paint).map((line) => cli.hints.asCalled(line)))
}

/** `kind` null: a plan of any kind. */
export const requestApply = async (
  cli: Cli,
  options: GlobalOptions,
  id: string,
  kind: PlanAction['kind'] | null,
): Promise<void> => {
  const { action } = kind === null ? { action: null } : await askPlan(cli, options, id)
  if (kind !== null && action !== kind) {
    throw usageFailure(`${id} is a plan for something else: ${action}.`, `muster plan apply ${id}`)
  }
  showApplied(cli, options, [await askApply(cli, connect(cli, options), id)])
}

const applyAll = async (
  cli: Cli,
  options: GlobalOptions,
  plane: OperatorClient,
  planned: readonly PlanView[],
): Promise<void> => {
  const applied: PlanApplied[] = []
  try {
    for (const plan of planned) applied.push(await askApply(cli, plane, plan.id))
  } catch (error) {
    // What was done is done, and is said in front of the error.
    if (applied.length > 0) showApplied(cli, options, applied)
    const left = planned.length - applied.length
    if (planned.length > 1) printer(cli, options).note(`${left} of ${counted(planned.length, 'plan')} not applied`)
    throw error
  }
  showApplied(cli, options, applied)
}

const askApply = (cli: Cli, plane: OperatorClient, id: string): Promise<PlanApplied> => {
  const params = { id }
  return withElapsed(
    cli,
    'applying',
    () => plane.ask(planApi.apply, { params, timeoutMs, about: { PLAN: id } }),
    async () => {
      const { done, of } = await plane.ask(planApi.progress, { params })
      return done === null ? null : `${done} of ${of}`
    },
  )
}

const showApplied = (cli: Cli, options: GlobalOptions, applied: readonly PlanApplied[]): void => {
  const steps = applied.flatMap((one) => one.steps)
  const rows = applied.flatMap(({ plan, steps: own }) => own.map((step) => stepRow(step, plan)))
  const print = printer(cli, options)
  print.answer(applied.length === 1 ? applied[0] : { applied }, (paint) =>
    renderHeadedTable(['SUBJECT', 'OUTCOME', 'PROOF'], rows, paint),
  )
  for (const { plan } of applied) if (isRollout(plan)) print.note(`how it goes on: muster rollout wait ${plan.id}`)
  const failed = steps.filter(({ done }) => !done).length
  if (failed === 0) return
  print.note(`${failed} of ${steps.length} were left as they are; see what is left to do with --plan`)
  cli.exit.finish(exitCodes.partly)
}

/** What it does is not over when it has been applied. */
const isRollout = ({ action }: Pick<PlanView, 'action'>): boolean => action === 'create-tasks'

const stepRow = (
  { subject, done, code, detail, receipt }: PlanApplied['steps'][number],
  plan: Pick<PlanView, 'action'>,
): Cell[] => [
  subject,
  done
    ? isRollout(plan)
      ? 'begun'
      : 'done'
    : { text: `${code ?? 'refused'}${detail === null ? '' : `: ${detail}`}`, colour: 'red' },
  receipt === null ? '' : `${receiptProgress(receipt)} (receipt ${receipt.id})`,
]

const askPlan = (cli: Cli, options: GlobalOptions, id: string) =>
  connect(cli, options).ask(planApi.show, { params: { id } })

const planLines = (plan: PlanView, paint: Paint): string[] => [
  ...renderFacts([
    ['plan', plan.id],
    ['action', plan.action],
    ['computed', `${plan.computed_at} by ${plan.by}`],
    ...(plan.applied_at === null ? [] : [['applied', `${plan.applied_at} by ${plan.applied_by ?? '?'}`] as const]),
    ...taskFacts(plan.task ?? null),
  ]),
  '',
  ...renderHeadedTable(
    ['SUBJECT', 'NOW', 'WOULD BE', 'LOSES ACCESS', 'NEEDS AN OPERATOR TO RECOVER'],
    plan.effects
      .filter(isShownBelow)
      .map(({ subject, facts, effect, loses, unrecoverable }): Cell[] => [
        subject,
        facts.join(', '),
        inDurations(effect),
        loses === null ? '' : { text: loses, colour: 'red' },
        unrecoverable ?? '',
      ]),
    paint,
  ),
]

/** As files and commands have them: `certificate.lifetimeMs: 24h -> 12h`. What the end of a long text has cut off stays as it is. */
const inDurations = (effect: string): string =>
  effect.replaceAll(/\b(\w*Ms: )(\d+|null) -> (\d+|null)(?=;|$)/g, (_, key: string, was: string, is: string) => {
    const [before, after] = [was, is].map((text) => (text === 'null' ? 'none' : formatDuration(Number(text))))
    return `${key}${before} -> ${after}`
  })

/** What would run is above the table: as one cell of it, its parameters would make every line as long. */
const isShownBelow = ({ subject }: PlanView['effects'][number]): boolean => subject !== 'task'

const shortParameters = 100

const taskFacts = (task: NonNullable<PlanView['task']> | null): readonly (readonly [string, string | string[]])[] => {
  if (task === null) return []
  const short = JSON.stringify(task.parameters)
  return [
    ['type', task.type],
    ['parameters', short.length <= shortParameters ? short : JSON.stringify(task.parameters, null, 2).split('\n')],
    ['expires', `each ${formatSpan(task.expires_in_ms)} after it was queued`],
    ['pace', `${task.concurrency} at once, and the rest is held after ${counted(task.failure_limit, 'failure')}`],
  ]
}
