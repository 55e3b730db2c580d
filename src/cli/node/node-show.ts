import { nodeApi } from '#wire/node/node-api.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { asCalled } from '#cli/kit/failure.ts'
import { nodeFacts } from './node-facts.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { renderFacts } from '#cli/kit/table.ts'

export const nodeShow = async (cli: Cli, options: GlobalOptions, id: string): Promise<void> => {
  const detail = await connect(cli, options).ask(nodeApi.show, { params: { id }, about: { ID: id } })
  printer(cli, options).answer(detail, () =>
    renderFacts(nodeFacts(detail, cli.clock.nowMs())).map((line) => asCalled(line, cli.program)),
  )
}
