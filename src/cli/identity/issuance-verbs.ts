import { type IssuanceView, issuanceApi } from '#wire/identity/issuance-api.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { renderFacts } from '#cli/kit/table.ts'

export const issuanceShow = async (cli: Cli, options: GlobalOptions): Promise<void> =>
  show(cli, options, await connect(cli, options).ask(issuanceApi.show))

export type HaltOptions = GlobalOptions & { readonly reason: string; readonly renewalsGoOn?: boolean }

export const issuanceHalt = async (cli: Cli, options: HaltOptions): Promise<void> => {
  const body = { reason: options.reason, ...(options.renewalsGoOn === true ? { renewals: true } : {}) }
  const plane = connect(cli, options)
  show(cli, options, await plane.ask(issuanceApi.halt, { body }))
  printer(cli, options).note('To let it go on: muster issuance resume')
}

export const issuanceResume = async (cli: Cli, options: GlobalOptions): Promise<void> => {
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
