import { NodeDetail } from '#wire/api/operator-api.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import { showState } from './node-act.ts'
import { connect } from '#cli/kit/operator-client.ts'

export type NodeHealthOptions = GlobalOptions & {
  readonly unhealthy?: boolean
  readonly ok?: boolean
  readonly reason?: string
}

export const nodeHealth = async (cli: Cli, options: NodeHealthOptions, id: string): Promise<void> => {
  const detail = await connect(cli, options).ask({
    method: 'POST',
    path: `/v1/nodes/${encodeURIComponent(id)}/health`,
    body: reportOf(options, id),
    answer: NodeDetail,
    about: { ID: id },
  })
  showState(cli, options, detail)
}

const reportOf = ({ unhealthy = false, ok = false, reason }: NodeHealthOptions, id: string): object => {
  if (unhealthy === ok) throw usageFailure('Say either --unhealthy or --ok.', `muster node health ${id} --ok`)
  if (ok) return { state: 'healthy' }
  if (reason !== undefined) return { state: 'unhealthy', reason }
  throw usageFailure('An unhealthy node has a reason.', `muster node health ${id} --unhealthy --reason REASON`)
}
