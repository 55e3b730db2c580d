import { tokenApi } from '#wire/enrollment/token-api.ts'
import type { Cli } from '#cli/kit/cli.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { withPlan, type PlanOptions } from '#cli/plans/plan-run.ts'
import { printer } from '#cli/kit/print.ts'
import { printable } from '#cli/kit/printable.ts'

export const tokenRevoke = withPlan(
  'revoke-token',
  (_options: PlanOptions, id: string | undefined) => ({ kind: 'revoke-token' as const, token: named(id) }),
  async (cli: Cli, options: PlanOptions, id: string | undefined) => {
    const token = await connect(cli, options).ask(tokenApi.revoke, { params: { id: named(id) } })
    printer(cli, options).answer(token, () => [`token ${printable(token.id)} ${token.state}`])
  },
)

const named = (id: string | undefined): string => {
  if (id === undefined) throw usageFailure('Which token?', 'muster token revoke ID, or --apply PLAN')
  return id
}
