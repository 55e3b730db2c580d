import { parseIsoTime } from '#platform/clock.ts'
import { type CaView, caApi } from '#wire/ca/ca-api.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { formatAgo, formatSpan } from '#cli/kit/duration.ts'
import { connect } from '#cli/kit/operator-client.ts'
import type { Paint } from '#cli/kit/paint.ts'
import { withPlan, type PlanOptions } from '#cli/plans/plan-run.ts'
import { printer } from '#cli/kit/print.ts'
import { printable } from '#cli/kit/printable.ts'
import { pemLines } from '#cli/kit/pem-lines.ts'
import { readText } from '#cli/kit/read-text.ts'
import { renderFacts, renderHeadedTable, type Cell } from '#cli/kit/table.ts'

export const caShow = async (cli: Cli, options: GlobalOptions): Promise<void> =>
  showCa(cli, options, await connect(cli, options).ask(caApi.show))

export type RotateOptions = PlanOptions & { readonly compromised?: string; readonly reason?: string }

export const caRotate = withPlan(
  'rotate-ca',
  ({ compromised, reason }: RotateOptions) => ({
    kind: 'rotate-ca' as const,
    ...(compromised === undefined ? {} : { compromised, reason: reason ?? usualReason }),
  }),
  async (cli: Cli, options: RotateOptions) => {
    if (options.compromised !== undefined) return withdraw(cli, options, options.compromised)
    showCa(cli, options, await connect(cli, options).ask(caApi.rotate))
  },
)

const usualReason = 'its key may be known to others'

const withdraw = async (cli: Cli, options: RotateOptions, issuer: string): Promise<void> => {
  const body = { issuer, reason: options.reason ?? usualReason }
  const plane = connect(cli, options)
  const done = await plane.ask(caApi.withdraw, { body })
  const print = printer(cli, options)
  print.answer(done, (paint) => [
    ...renderFacts([
      ['withdrawn', done.withdrawn.length === 0 ? `${issuer}, before now` : done.withdrawn],
      ['successors', done.successors.length === 0 ? 'none needed: others sign here' : done.successors],
      ['channels cut', `${done.channels_cut} here`],
    ]),
    '',
    ...caLines(done.ca, cli.clock.nowMs(), paint),
  ])
  print.note('Its nodes recover by themselves, a few dozen a second; who waits for people: muster alert list')
}

export const caImport = async (cli: Cli, options: GlobalOptions, file: string): Promise<void> => {
  const certificate = await readText(cli, file, 16_384)
  const plane = connect(cli, options)
  showCa(cli, options, await plane.ask(caApi.importIssued, { body: { certificate } }))
}

export const caRequest = async (cli: Cli, options: GlobalOptions): Promise<void> => {
  const answer = await connect(cli, options).ask(caApi.request)
  const print = printer(cli, options)
  print.answer(answer, () => pemLines(answer.csr))
  print.note('next: where the root key is: muster ca sign --root-key FILE --root-cert FILE --request FILE')
}

export const caBundle = async (cli: Cli, options: GlobalOptions & { readonly join?: boolean }): Promise<void> => {
  const answer = await connect(cli, options).ask(caApi.bundle)
  const print = printer(cli, options)
  print.answer(answer, () => (options.join === true ? [printable(answer.join)] : answer.roots.flatMap(pemLines)))
  print.note(`root fingerprint sha256:${answer.root_fingerprint}`)
}

const showCa = (cli: Cli, options: GlobalOptions, ca: CaView): void =>
  printer(cli, options).answer(ca, (paint) => caLines(ca, cli.clock.nowMs(), paint))

export const caLines = (ca: CaView, nowMs: number, paint: Paint): string[] => [
  ...renderFacts([
    ['domain', ca.domain],
    ['root', `sha256:${ca.root_fingerprint}, its key ${ca.root_online ? 'on this plane' : 'offline'}`],
    [
      'sealing',
      ca.sealing_protected
        ? 'protected'
        : 'unprotected: the sealing key lies beside what it seals, or others may read it',
    ],
    ['server', `${ca.server_certificate.names.join(', ')}, ${until(ca.server_certificate.not_after, nowMs)}`],
    ...ca.warnings.map((warning) => ['warning', warning] as const),
  ]),
  '',
  ...renderHeadedTable(
    ['AUTHORITY', 'ROLE', 'KEY', 'SIGNS', 'VALID', 'SUBJECT'],
    ca.authorities.map((authority) => [
      authority.id,
      authority.role,
      authority.custody,
      signs(authority),
      until(authority.not_after, nowMs),
      authority.subject,
    ]),
    paint,
  ),
]

const signs = ({ signing, withdrawn_at: withdrawn }: CaView['authorities'][number]): Cell => {
  if (withdrawn !== undefined) return { text: 'withdrawn', colour: 'red' }
  return signing ? { text: 'yes', colour: 'green' } : 'no'
}

const until = (notAfter: string, nowMs: number): string => {
  const ms = parseIsoTime(notAfter)
  if (ms === null) return notAfter
  return ms > nowMs ? `for ${formatSpan(ms - nowMs)}` : `expired ${formatAgo(ms, nowMs)}`
}
