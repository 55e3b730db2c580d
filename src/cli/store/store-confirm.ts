// A store that may be an older copy: what speaks against it, and taking it for what it is.

import { type DoubtView, storeApi } from '#wire/continuity/store-api.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { renderFacts } from '#cli/kit/table.ts'

export const storeConfirm = async (cli: Cli, options: GlobalOptions & { readonly reason?: string }): Promise<void> => {
  const plane = connect(cli, options)
  const print = printer(cli, options)
  if (options.reason === undefined) {
    const found = await plane.ask(storeApi.continuity)
    const { doubt } = found
    print.answer(found, () => (doubt === null ? ['Nothing speaks against the store.'] : renderFacts(doubtFacts(doubt))))
    if (doubt === null) return
    print.note(`${whatToDo(doubt)} Then: muster store confirm --reason REASON`)
    return cli.finish(exitCodes.notReady)
  }
  const body = { reason: options.reason }
  const done = await plane.ask(storeApi.confirm, { body })
  print.answer(done, () =>
    renderFacts([
      ['store', `confirmed: certificates are issued again (lineage ${done.lineage})`],
      ...doubtFacts(done.confirmed),
    ]),
  )
  print.note(whatToDo(done.confirmed))
}

const doubtFacts = (doubt: DoubtView): readonly (readonly [string, string])[] => [
  ['doubted', `since ${doubt.since}`],
  ['why', doubt.in_words],
  [
    'missing',
    doubt.missing === null ? 'not known: the copy has gone on by itself' : `at least ${doubt.missing} entries`,
  ],
  ['newest entry', doubt.newest_entry === null ? 'not known' : `${doubt.newest_entry} when the planes were started`],
]

const whatToDo = ({ newest_entry: since }: DoubtView): string =>
  `What was done after ${since ?? 'this copy was made'} may be forgotten here: revoke again what was revoked since, with its tokens and operator keys; machines that enrolled since need a new token.`
