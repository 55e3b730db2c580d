import { signIntermediate } from '#plane/authority/sign-intermediate.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { durationOption } from '#cli/kit/duration-option.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { Failure } from '#cli/kit/failure.ts'
import { pemLines } from '#cli/kit/pem-lines.ts'
import { printer } from '#cli/kit/print.ts'
import { readText } from '#cli/kit/read-text.ts'

type Options = GlobalOptions & {
  readonly rootKey: string
  readonly rootCert: string
  readonly request: string
  readonly lifetime: string
}

const longestFile = 64 * 1024

/** The half of the ceremony that happens where the root key is; no plane is asked. */
export const caSign = async (cli: Cli, options: Options): Promise<void> => {
  const signed = signIntermediate({
    rootKeyPem: await readText(cli, options.rootKey, longestFile),
    rootCertificatePem: await readText(cli, options.rootCert, longestFile),
    requestPem: await readText(cli, options.request, longestFile),
    lifetimeMs: durationOption('--lifetime', options.lifetime),
    nowMs: cli.clock.nowMs(),
    random: cli.random,
  })
  if (typeof signed !== 'string') {
    throw new Failure({
      exit: exitCodes.refused,
      code: signed.code,
      sentence: 'The request was not signed.',
      detail: signed.detail,
      next: 'Make a new request on the plane: muster ca request',
    })
  }
  const print = printer(cli, options)
  print.answer({ certificate: signed }, () => pemLines(signed))
  print.note('next: on the plane: muster ca import FILE')
}
