import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import { showState } from './node-act.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { schedulingApi, type HealthRequest } from '#wire/fleet/scheduling-api.ts'

export type NodeHealthOptions = GlobalOptions & {
  readonly unhealthy?: boolean
  readonly ok?: boolean
  readonly reason?: string
}

export const nodeHealth = async (cli: Cli, options: NodeHealthOptions, id: string): Promise<void> => {
  const detail = await connect(cli, options).ask(schedulingApi.reportHealth, {
    params: { id },
    body: reportOf(options, id),
    about: { ID: id },
  })
  showState(cli, options, detail)
}

const reportOf = ({ unhealthy = false, ok = false, reason }: NodeHealthOptions, id: string): HealthRequest => {
  if (unhealthy === ok) throw usageFailure('Say either --unhealthy or --ok.', `muster node health ${id} --ok`)
  if (ok) return { state: 'healthy' }
  if (reason !== undefined) return { state: 'unhealthy', reason }
  throw usageFailure('An unhealthy node has a reason.', `muster node health ${id} --unhealthy --reason REASON`)
}
