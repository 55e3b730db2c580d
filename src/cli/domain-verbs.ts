import { DomainBody } from '#wire/operator-api.ts'
import type { Cli, GlobalOptions } from './cli.ts'
import { connect } from './operator-client.ts'
import { printer } from './print.ts'
import { parseSettings, settingLines } from './settings.ts'
import { renderFacts } from './table.ts'

export const domainShow = async (cli: Cli, options: GlobalOptions): Promise<void> => {
  const domain = await connect(cli, options).ask({ method: 'GET', path: '/v1/domain', answer: DomainBody })
  printer(cli, options).answer(domain, () => renderFacts(settingLines(domain)))
}

export const domainSet = async (cli: Cli, options: GlobalOptions, pairs: readonly string[]): Promise<void> => {
  const domain = await connect(cli, options).ask({
    method: 'PATCH',
    path: '/v1/domain',
    body: { set: parseSettings(DomainBody, pairs) },
    answer: DomainBody,
  })
  printer(cli, options).answer(domain, () => renderFacts(settingLines(domain)))
}
