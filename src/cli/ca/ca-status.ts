import { type CertificateStatusView, certificateStatusApi } from '#wire/ca/certificate-status-api.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { renderFacts } from '#cli/kit/table.ts'

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
