import type { Command } from 'commander'
import type { Cli } from '#cli/kit/cli.ts'
import { noun, performs, verb } from '#cli/kit/verb.ts'

export const declarePlan = (program: Command, cli: Cli): void => {
  const plan = noun(program, 'plan', 'What a command would do, shown with --plan and done with plan apply', [
    ['muster node revoke gpu-001 gpu-002 --reason stolen --plan', 'shows it'],
    ['muster plan apply 01JCQ7Z6W3M8X9Y0Z1A2B3C4D5', 'does it, unless something has changed'],
  ])
  const verbs = () => import('./plan-run.ts')

  const show = verb(plan, 'show <id>', 'A plan as it was shown', [['muster plan show 01JCQ7Z6W3M8X9Y0Z1A2B3C4D5', '']])
  performs(cli, show, async () => (await verbs()).showPlan)

  const apply = verb(plan, 'apply <id>', 'Do what a plan has shown; refused with what changed if anything has', [
    ['muster plan apply 01JCQ7Z6W3M8X9Y0Z1A2B3C4D5', ''],
  ])
  performs(cli, apply, async () => {
    const { applyPlan } = await verbs()
    return (used: Cli, options: Parameters<typeof applyPlan>[1], id: string) => applyPlan(used, options, id, null)
  })
}
