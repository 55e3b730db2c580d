// `muster ca crl` and `muster ca status`: whether certificates still hold, as the plane says.

import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { pemLines } from '#cli/kit/printable.ts'
import { renderFacts } from '#cli/kit/table.ts'
import { replaceFile } from '#platform/files.ts'
import { certificateStatusApi, type CertificateStatusView } from '#wire/ca/certificate-status-api.ts'
import { nodeNamesApi } from '#wire/programs/names-api.ts'

type CrlOptions = GlobalOptions & {
  readonly issuer?: string
  readonly delta?: boolean
  readonly programs?: boolean
  readonly out?: string
}

export const caCrl = async (cli: Cli, options: CrlOptions): Promise<void> => {
  if (options.programs === true) return programLists(cli, options)
  const query = {
    ...(options.issuer === undefined ? {} : { issuer: options.issuer }),
    ...(options.delta === true ? { delta: true } : {}),
  }
  const list = await connect(cli, options).ask(certificateStatusApi.crl, { query })
  const print = printer(cli, options)
  // Fetched repeatedly into the same file: a reader sees either the old list or the new one.
  if (options.out !== undefined) replaceFile(options.out, list.crl, 0o644)
  print.answer(list, () => (options.out === undefined ? pemLines(list.crl) : []))
  const kind = list.base_number === null ? 'full list' : `delta to ${list.base_number}`
  print.note(`${kind} ${list.number} of ${list.issuer}: ${list.entries} revoked, good until ${list.next_update}`)
}

/** OpenSSL asks for a list of every authority of a chain, so all of them go into one file. */
const programLists = async (cli: Cli, options: CrlOptions): Promise<void> => {
  if (options.issuer !== undefined || options.delta === true)
    throw usageFailure('--programs prints the full lists of all authorities.', 'Leave --issuer and --delta out')
  const { lists } = await connect(cli, options).ask(nodeNamesApi.programLists)
  if (lists.length === 0) throw noProgramsYet()
  const print = printer(cli, options)
  if (options.out !== undefined) replaceFile(options.out, lists.map(({ list }) => list).join(''), 0o644)
  print.answer({ lists }, () => (options.out === undefined ? lists.flatMap(({ list }) => pemLines(list)) : []))
  for (const { role, number, issuer, next_update: until } of lists)
    print.note(`list ${number} of the ${role} ${issuer}: good until ${until}`)
}

export const noProgramsYet = () => usageFailure('There is no programs root yet.', 'It is made with the first output')

export const caStatus = async (cli: Cli, options: GlobalOptions, given: string): Promise<void> => {
  // As tools print it: with colons, in capitals, with zeros in front.
  const serial = given
    .replaceAll(':', '')
    .toLowerCase()
    .replace(/^0+(?=.)/, '')
  if (!/^[0-9a-f]{1,40}$/.test(serial)) throw usageFailure('SERIAL is a serial number in hexadecimal digits.')
  const status = await connect(cli, options).ask(certificateStatusApi.show, { params: { serial } })
  printer(cli, options).answer(status, () => renderFacts(factsOf(status)))
}

const factsOf = (status: CertificateStatusView): readonly (readonly [string, string])[] => [
  ['serial', status.serial],
  [
    'status',
    status.revoked_at === null
      ? status.status
      : `revoked since ${status.revoked_at} (${status.reason ?? 'unspecified'})`,
  ],
  ...(status.issuer === null || status.issued_at === null || status.not_after === null
    ? [['on record', 'no: not one of ours, or long expired'] as const]
    : [
        ['of', status.node === null ? 'the plane itself' : `${status.node}, epoch ${status.epoch ?? ''}`] as const,
        ['issuer', status.issuer] as const,
        ['issued', status.issued_at] as const,
        ['ends', status.not_after] as const,
      ]),
]
