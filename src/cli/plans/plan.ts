// `muster plan`, and plan before harm: `--plan` of other commands shows what they would do, `--apply PLAN` does what was shown.

import type { Command } from 'commander'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { noun, performs, verb } from '#cli/kit/verb.ts'
import type { PlanAction } from '#domain/plans/plan.ts'
import { type PlanView, type PlanActionBody, planApi } from '#wire/plans/plan-api.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { type Paint, printer } from '#cli/kit/print.ts'
import { receiptProgress } from '#cli/revocation/receipt-lines.ts'
import { renderFacts, renderHeadedTable, type Cell } from '#cli/kit/table.ts'

export const declarePlan = (plan: Command, cli: Cli): void => {
  noun(plan, [
    ['muster node revoke gpu-001 gpu-002 --reason stolen --plan', 'shows it'],
    ['muster plan apply 01JCQ7Z6W3M8X9Y0Z1A2B3C4D5', 'does it, unless something has changed'],
  ])
  const show = verb(plan, 'show <id>', 'A plan as it was shown', [['muster plan show 01JCQ7Z6W3M8X9Y0Z1A2B3C4D5', '']])
  performs(cli, show, showPlan)

  const apply = verb(plan, 'apply <id>', 'Do what a plan has shown; refused with what changed if anything has', [
    ['muster plan apply 01JCQ7Z6W3M8X9Y0Z1A2B3C4D5', ''],
  ])
  performs(cli, apply, (used: Cli, options: GlobalOptions, id: string) => requestApply(used, options, id, null))
}

export type PlanOptions = GlobalOptions & { readonly plan?: boolean; readonly apply?: string }

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
    if (options.apply !== undefined && options.plan === true) {
      throw usageFailure('--plan shows and --apply does: give one of them.')
    }
    if (options.apply !== undefined) {
      if (saysWhat(options, args)) {
        const why = 'A plan says already what is to be done, to whom and why: --apply takes no more than its id.'
        throw usageFailure(why, `See it: muster plan show ${options.apply}; do it: muster plan apply ${options.apply}`)
      }
      return requestApply(cli, options, options.apply, kind)
    }
    if (options.plan === true) return computePlan(cli, options, actionOf(options, ...args))
    return otherwise(cli, options, ...args)
  }

/** Who names another node beside a plan would otherwise do harm to one he has not named. */
const saysWhat = (options: object, args: readonly unknown[]): boolean =>
  args.some((arg) => (Array.isArray(arg) ? arg.length > 0 : arg !== undefined)) ||
  ['reason', 'reasonCode', 'force', 'compromised'].some((name) => name in options)

const computePlan = async (cli: Cli, options: GlobalOptions, action: PlanActionBody): Promise<void> => {
  const about = 'nodes' in action ? { ID: action.nodes[0] ?? 'ID' } : {}
  const body = { action }
  const plan = await connect(cli, options).ask(planApi.compute, { body, about, timeoutMs })
  const print = printer(cli, options)
  print.answer(plan, (paint) => planLines(plan, paint).map((line) => cli.hints.asCalled(line)))
  print.note(`nothing was done; to do this, until ${plan.expires_at}: muster plan apply ${plan.id}`)
}

/** For an order that is only carried out as planned. A script that takes this for done would be wrong: its exit code says so. */
export const onlyPlan = async (cli: Cli, options: GlobalOptions, action: PlanActionBody): Promise<void> => {
  await computePlan(cli, options, action)
  cli.exit.finish(exitCodes.onlyPlanned)
}

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
  const applied = await connect(cli, options).ask(planApi.apply, { params: { id }, timeoutMs })
  const print = printer(cli, options)
  print.answer(applied, (paint) =>
    renderHeadedTable(
      ['SUBJECT', 'OUTCOME', 'PROOF'],
      applied.steps.map(({ subject, done, code, detail, receipt }): Cell[] => [
        subject,
        done ? 'done' : { text: `${code ?? 'refused'}${detail === null ? '' : `: ${detail}`}`, colour: 'red' },
        receipt === null ? '' : `${receiptProgress(receipt)} (receipt ${receipt.id})`,
      ]),
      paint,
    ),
  )
  const failed = applied.steps.filter(({ done }) => !done).length
  if (failed === 0) return
  print.note(`${failed} of ${applied.steps.length} were left as they are; see what is left to do with --plan`)
  cli.exit.finish(exitCodes.partly)
}

const askPlan = (cli: Cli, options: GlobalOptions, id: string) =>
  connect(cli, options).ask(planApi.show, { params: { id } })

const planLines = (plan: PlanView, paint: Paint): string[] => [
  ...renderFacts([
    ['plan', plan.id],
    ['action', plan.action],
    ['computed', `${plan.computed_at} by ${plan.by}`],
    ...(plan.applied_at === null ? [] : [['applied', `${plan.applied_at} by ${plan.applied_by ?? '?'}`] as const]),
  ]),
  '',
  ...renderHeadedTable(
    ['SUBJECT', 'NOW', 'WOULD BE', 'LOSES ACCESS', 'CANNOT COME BACK BY ITSELF'],
    plan.effects.map(({ subject, facts, effect, loses, unrecoverable }): Cell[] => [
      subject,
      facts.join(', '),
      effect,
      loses === null ? '' : { text: loses, colour: 'red' },
      unrecoverable ?? '',
    ]),
    paint,
  ),
]
