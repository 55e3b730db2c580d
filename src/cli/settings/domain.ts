// `muster domain`: values that hold for the whole trust domain, and the names of its plane.

import type { Command } from 'commander'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { lists, loads, noun, performs, verb } from '#cli/kit/verb.ts'
import type { Static } from 'typebox'
import { issuanceApi } from '#wire/identity/issuance-api.ts'
import { DomainBody, settingsApi, type DomainView } from '#wire/settings/settings-api.ts'
import { issuanceFacts } from '#cli/identity/issuance.ts'
import { declareDomainNames } from './domain-names.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer, type Print } from '#cli/kit/print.ts'
import { noEffectNote, parseSettings, settingLines, thatAreSet } from '#cli/kit/settings.ts'
import { renderFacts } from '#cli/kit/table.ts'

export const declareDomain = (domain: Command, cli: Cli): void => {
  noun(domain, [
    ['muster domain show', ''],
    ['muster domain names list', ''],
  ])
  const show = verb(domain, 'show', 'Show the settings of the domain, as domain set takes them', [
    ['muster domain show', ''],
  ])
  performs(cli, show, domainShow)

  const set = verb(domain, 'set <settings...>', 'Change settings of the domain', [
    ['muster domain set livenessGraceMs=10m', 'how long a node may be silent before it is inactive'],
    ['muster domain set strangersPerMinute=50 defaultProfile=mesh-paas', ''],
    [
      `muster domain set 'maintenance.timeSync={"name":"chronyd","command":["/usr/sbin/chronyd","-d"]}'`,
      'runs on every node, also in maintenance mode',
    ],
    ['muster domain set overlayPrefix=fd12:3456:789a::/64', 'before the first node of the WireGuard network'],
  ])
  performs(cli, set, domainSet)
  declareDomainNames(domain, cli)

  const agents = verb(domain, 'agents', 'List the agents that machines may fetch from the plane', [
    ['muster domain agents', 'with their digests; they lie in the folder of muster plane --agents'],
  ])
  loads(cli, lists(agents), async () => (await import('./domain-agents.ts')).domainAgents)
}

const domainShow = async (cli: Cli, options: GlobalOptions): Promise<void> => {
  const plane = connect(cli, options)
  const domain = await plane.ask(settingsApi.domain)
  const issuance = await plane.ask(issuanceApi.show)
  const print = printer(cli, options)
  showDomain(print, domain, domain.no_effect_yet)
  // No setting, and so not among them.
  if (issuance.state === 'halted') print.note(renderFacts(issuanceFacts(issuance)).join('\n'))
}

const domainSet = async (cli: Cli, options: GlobalOptions, pairs: readonly string[]): Promise<void> => {
  const domain = await connect(cli, options).ask(settingsApi.changeDomain, {
    body: { set: parseSettings(DomainBody, pairs) },
  })
  showDomain(printer(cli, options), domain, thatAreSet(domain.no_effect_yet, domain))
}

const showDomain = (print: Print, domain: Static<typeof DomainView>, marked: readonly string[] | undefined): void => {
  const { no_effect_yet: _names, ...settings } = domain
  print.answer(domain, () => renderFacts(domainLines(settings)))
  const note = noEffectNote(marked)
  if (note !== null) print.note(note)
}

/** A service is set as a whole, so it is shown as one. */
const domainLines = ({ maintenance, ...rest }: Static<typeof DomainBody>): [name: string, value: string][] => {
  const { timeSync } = maintenance
  const shown = timeSync === null ? null : JSON.stringify(timeSync)
  return settingLines({ ...rest, maintenance: { ...maintenance, timeSync: shown } })
}
