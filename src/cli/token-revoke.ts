import { TokenView } from '#wire/operator-api.ts'
import type { Cli } from './cli.ts'
import { usageFailure } from './failure.ts'
import { connect } from './operator-client.ts'
import { withPlan, type PlanOptions } from './plan-run.ts'
import { printer } from './print.ts'
import { printable } from './printable.ts'

export const tokenRevoke = withPlan(
  'revoke-token',
  (_options: PlanOptions, id: string | undefined) => ({ kind: 'revoke-token' as const, token: named(id) }),
  async (cli: Cli, options: PlanOptions, id: string | undefined) => {
    const token = await connect(cli, options).ask({
      method: 'POST',
      path: `/v1/tokens/${encodeURIComponent(named(id))}/revoke`,
      answer: TokenView,
    })
    printer(cli, options).answer(token, () => [`token ${printable(token.id)} ${token.state}`])
  },
)

const named = (id: string | undefined): string => {
  if (id === undefined) throw usageFailure('Which token?', 'muster token revoke ID, or --apply PLAN')
  return id
}
