import { NodeDetail } from '#wire/operator-api.ts'
import type { Cli, GlobalOptions } from './cli.ts'
import { asCalled } from './failure.ts'
import { nodeFacts } from './node-facts.ts'
import { connect } from './operator-client.ts'
import { printer } from './print.ts'
import { renderFacts } from './table.ts'

export const nodeShow = async (cli: Cli, options: GlobalOptions, id: string): Promise<void> => {
  const detail = await connect(cli, options).ask({
    method: 'GET',
    path: `/v1/nodes/${encodeURIComponent(id)}`,
    answer: NodeDetail,
    about: { ID: id },
  })
  printer(cli, options).answer(detail, () =>
    renderFacts(nodeFacts(detail, cli.clock.nowMs())).map((line) => asCalled(line, cli.program)),
  )
}
