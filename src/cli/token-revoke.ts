import { TokenView } from '#wire/operator-api.ts'
import type { Cli, GlobalOptions } from './cli.ts'
import { connect } from './operator-client.ts'
import { printer } from './print.ts'
import { printable } from './printable.ts'

export const tokenRevoke = async (cli: Cli, options: GlobalOptions, id: string): Promise<void> => {
  const token = await connect(cli, options).ask({
    method: 'POST',
    path: `/v1/tokens/${encodeURIComponent(id)}/revoke`,
    answer: TokenView,
  })
  printer(cli, options).answer(token, () => [`token ${printable(token.id)} ${token.state}`])
}
