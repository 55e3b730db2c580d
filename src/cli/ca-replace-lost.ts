import { planeConfig } from '#plane/config.ts'
import { replaceLostKey } from '#plane/replace-lost-key.ts'
import { openLog } from '#platform/log.ts'
import type { Cli, GlobalOptions } from './cli.ts'
import { planeTrouble } from './plane-trouble.ts'
import { printer } from './print.ts'
import { renderFacts } from './table.ts'

export const caReplaceLost = async (cli: Cli, options: GlobalOptions, key: string): Promise<void> => {
  const done = await replaced(cli, options, key)
  const print = printer(cli, options)
  print.answer(done, () => renderFacts([['replaced', `the ${done.role} key of ${done.domain}`]]))
  print.note(after[done.role])
}

const after = {
  issuing: 'certificates in use stay valid; revocation lists of the lost CA can no longer be signed',
  recovery:
    'connected machines learn the new recovery root; one that was off meanwhile needs muster node repair-bundle or a new token',
  statement:
    'machines take the new key with their next renewal; one whose certificate ends before that needs muster node repair-bundle',
  bearer: 'bearer tokens that were handed out before no longer work; machines get new ones with their next renewal',
  journal:
    'heads that the lost key has signed are still verified by its public half in keys/journal.KEY_ID.key; with PostgreSQL restart every plane, so that it signs with the new key',
} as const

const replaced = async (cli: Cli, options: GlobalOptions, key: string) => {
  try {
    const config = planeConfig(options, cli.env)
    return await replaceLostKey(config, key, openLog(config.logLevel, 'plane'))
  } catch (error) {
    throw planeTrouble(error)
  }
}
