import { journalApi } from '#wire/journal/journal-api.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { printable } from '#cli/kit/printable.ts'

const differ = (rows: number): string => (rows === 1 ? '1 row differs' : `${rows} rows differ`)

/** A long journal takes its time. */
const timeoutMs = 30 * 60_000

export const journalVerify = async (cli: Cli, options: GlobalOptions): Promise<void> => {
  const answer = await connect(cli, options).ask(journalApi.verify, { timeoutMs })
  const print = printer(cli, options)
  const { broken } = answer
  if (answer.intact && broken === null) {
    const { heads, entries } = answer
    const several = heads.length > 1
    const chains = several ? `${heads.length} chains` : 'chain'
    print.answer(answer, () => [`${chains} intact, ${entries} ${entries === 1 ? 'entry' : 'entries'}`])
    for (const { chain, sequence, hash } of heads)
      print.note(`head ${several ? `of chain ${printable(chain)} ` : ''}${sequence} ${hash}; keep it elsewhere`)
    return
  }
  const differences = answer.rows?.differences ?? []
  if (broken === null) {
    const lines = differences.map(({ row, subject, why, fenced }) =>
      printable(`${row} ${subject}: ${why}${fenced ? ' (shut out until you have looked)' : ''}`),
    )
    print.answer(answer, () => [`chain intact, ${differ(differences.length)} from it`, ...lines])
    print.note('next: find out who writes to the database, then look at each: muster alert list')
    return cli.finish(exitCodes.journalBroken)
  }
  const where =
    broken === null
      ? ''
      : broken.from === broken.to
        ? ` at entry ${broken.from}`
        : ` between entries ${broken.from} and ${broken.to}`
  print.answer(answer, () => [`chain broken${where}${broken === null ? '' : `: ${printable(broken.why)}`}`])
  print.note('next: keep the data folder as it is, and compare with your last export: muster journal export')
  cli.finish(exitCodes.journalBroken)
}
