import type { Static } from 'typebox'
import { issuanceApi } from '#wire/identity/issuance-api.ts'
import { DomainBody, settingsApi } from '#wire/settings/settings-api.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { issuanceFacts } from '#cli/identity/issuance-verbs.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { parseSettings, settingLines } from '#cli/kit/settings.ts'
import { renderFacts } from '#cli/kit/table.ts'

export const domainShow = async (cli: Cli, options: GlobalOptions): Promise<void> => {
  const plane = connect(cli, options)
  const domain = await plane.ask(settingsApi.domain)
  const issuance = await plane.ask(issuanceApi.show)
  const print = printer(cli, options)
  print.answer(domain, () => renderFacts(domainLines(domain)))
  // No setting, and so not among them.
  if (issuance.state === 'halted') print.note(renderFacts(issuanceFacts(issuance)).join('\n'))
}

export const domainSet = async (cli: Cli, options: GlobalOptions, pairs: readonly string[]): Promise<void> => {
  const domain = await connect(cli, options).ask(settingsApi.changeDomain, {
    body: { set: parseSettings(DomainBody, pairs) },
  })
  printer(cli, options).answer(domain, () => renderFacts(domainLines(domain)))
}

/** A service is set as a whole, so it is shown as one. */
const domainLines = ({ maintenance, ...rest }: Static<typeof DomainBody>): [name: string, value: string][] => {
  const { timeSync } = maintenance
  const shown = timeSync === null ? null : JSON.stringify(timeSync)
  return settingLines({ ...rest, maintenance: { ...maintenance, timeSync: shown } })
}
