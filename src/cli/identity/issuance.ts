// `muster issuance`: whether certificates are issued at all.

import type { Command } from 'commander'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { noun, performs, verb } from '#cli/kit/verb.ts'
import { type IssuanceView, issuanceApi } from '#wire/identity/issuance-api.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { renderFacts } from '#cli/kit/table.ts'

export const declareIssuance = (issuance: Command, cli: Cli): void => {
  noun(issuance, [
    ['muster issuance show', ''],
    ['muster issuance halt --reason "the store may have been copied"', 'on every plane, at once'],
    ['muster issuance resume', ''],
  ])
  const show = verb(issuance, 'show', 'Show whether certificates are issued, and who has halted it', [
    ['muster issuance show', ''],
  ])
  performs(cli, show, issuanceShow)

  const halt = verb(
    issuance,
    'halt',
    'Stop issuing certificates on every plane; connections and certificates in use stay as they are',
    [
      ['muster issuance halt --reason "unknown enrollments since 3 a.m."', ''],
      ['muster issuance halt --reason "audit" --renewals-go-on', 'no new nodes; existing nodes stay in'],
    ],
  )
    .requiredOption('--reason <text>', 'why; goes into the journal, the alert and the refusals that agents get')
    .option('--renewals-go-on', 'nodes that are in still renew')
  performs(cli, halt, issuanceHalt)

  const resume = verb(
    issuance,
    'resume',
    'Issue certificates again; agents that waited ask again without an operator',
    [['muster issuance resume', '']],
  )
  performs(cli, resume, issuanceResume)
}

const issuanceShow = async (cli: Cli, options: GlobalOptions): Promise<void> =>
  show(cli, options, await connect(cli, options).ask(issuanceApi.show))

type HaltOptions = GlobalOptions & { readonly reason: string; readonly renewalsGoOn?: boolean }

const issuanceHalt = async (cli: Cli, options: HaltOptions): Promise<void> => {
  const body = { reason: options.reason, ...(options.renewalsGoOn === true ? { renewals: true } : {}) }
  const plane = connect(cli, options)
  show(cli, options, await plane.ask(issuanceApi.halt, { body }))
  printer(cli, options).note('To let it go on: muster issuance resume')
}

const issuanceResume = async (cli: Cli, options: GlobalOptions): Promise<void> => {
  const plane = connect(cli, options)
  show(cli, options, await plane.ask(issuanceApi.resume))
}

const show = (cli: Cli, options: GlobalOptions, issuance: IssuanceView): void =>
  printer(cli, options).answer(issuance, () => renderFacts(issuanceFacts(issuance)))

export const issuanceFacts = ({ halted }: IssuanceView): readonly (readonly [string, string])[] =>
  halted === null
    ? [['issuance', 'open: certificates are issued']]
    : [
        ['issuance', `halted by ${halted.by} since ${halted.since}`],
        ['reason', halted.reason],
        ['renewals', halted.renewals ? 'go on' : 'halted too'],
      ]
