import { replaceFile } from '#platform/files.ts'
import { certificateStatusApi } from '#wire/ca/certificate-status-api.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { pemLines } from '#cli/kit/pem-lines.ts'
import { printer } from '#cli/kit/print.ts'

export type CrlOptions = GlobalOptions & {
  readonly issuer?: string
  readonly delta?: boolean
  readonly out?: string
}

export const caCrl = async (cli: Cli, options: CrlOptions): Promise<void> => {
  const query = {
    ...(options.issuer === undefined ? {} : { issuer: options.issuer }),
    ...(options.delta === true ? { delta: true } : {}),
  }
  const list = await connect(cli, options).ask(certificateStatusApi.crl, { query })
  const print = printer(cli, options)
  // Fetched again and again into the same file: whoever reads it meanwhile sees one list or the other.
  if (options.out !== undefined) replaceFile(options.out, list.crl, 0o644)
  print.answer(list, () => (options.out === undefined ? pemLines(list.crl) : []))
  const kind = list.base_number === null ? 'full list' : `delta to ${list.base_number}`
  print.note(`${kind} ${list.number} of ${list.issuer}: ${list.entries} revoked, good until ${list.next_update}`)
}
