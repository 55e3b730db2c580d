import type { Command } from 'commander'
import type { Cli } from '#cli/kit/cli.ts'
import { noun, performs, verb } from '#cli/kit/verb.ts'

export const declareIssuance = (program: Command, cli: Cli): void => {
  const issuance = noun(program, 'issuance', 'Whether certificates are issued at all', [
    ['muster issuance show', ''],
    ['muster issuance halt --reason "somebody has a copy of the store"', 'on every plane, at once'],
    ['muster issuance resume', ''],
  ])
  const verbs = () => import('./issuance-verbs.ts')

  const show = verb(issuance, 'show', 'Whether certificates are issued, and who has halted that', [
    ['muster issuance show', ''],
  ])
  performs(cli, show, async () => (await verbs()).issuanceShow)

  const halt = verb(
    issuance,
    'halt',
    'No plane issues anything to a node from now on; connections and certificates in use stay as they are',
    [
      ['muster issuance halt --reason "unknown enrollments since 3 a.m."', ''],
      ['muster issuance halt --reason "audit" --renewals-go-on', 'nobody new; whoever is in stays in'],
    ],
  )
    .requiredOption('--reason <text>', 'why; goes into the journal, the alert and what agents are told')
    .option('--renewals-go-on', 'nodes that are in still renew')
  performs(cli, halt, async () => (await verbs()).issuanceHalt)

  const resume = verb(issuance, 'resume', 'Issue certificates again; agents that waited come by themselves', [
    ['muster issuance resume', ''],
  ])
  performs(cli, resume, async () => (await verbs()).issuanceResume)
}
