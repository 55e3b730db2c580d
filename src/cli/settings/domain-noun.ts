import type { Command } from 'commander'
import type { Cli } from '#cli/kit/cli.ts'
import { noun, performs, verb } from '#cli/kit/verb.ts'

export const declareDomain = (program: Command, cli: Cli): void => {
  const domain = noun(program, 'domain', 'Values that hold for the whole trust domain', [['muster domain show', '']])
  const verbs = () => import('./domain-verbs.ts')

  const show = verb(domain, 'show', 'Show them, in words that domain set takes', [['muster domain show', '']])
  performs(cli, show, async () => (await verbs()).domainShow)

  const set = verb(domain, 'set <settings...>', 'Change them', [
    ['muster domain set livenessGraceMs=10m', 'how long a node may be silent before it is inactive'],
    ['muster domain set strangersPerMinute=50 defaultProfile=mesh-paas', ''],
    [
      `muster domain set 'maintenance.timeSync={"name":"chronyd","command":["/usr/sbin/chronyd","-d"]}'`,
      'runs on every node, also in maintenance mode',
    ],
    ['muster domain set overlayPrefix=fd12:3456:789a::/64', 'before the first node of the WireGuard network'],
  ])
  performs(cli, set, async () => (await verbs()).domainSet)
}
