// The ceremony on both machines: where the key of the root is, without a plane; and on a plane that was never started.

import { durationOption, readText } from '#cli/kit/arguments.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { Failure, usageFailure } from '#cli/kit/failure.ts'
import { pemLines } from '#cli/kit/printable.ts'
import { printer } from '#cli/kit/print.ts'
import { renderFacts } from '#cli/kit/table.ts'
import { planeTrouble } from '#cli/plane/plane-trouble.ts'
import type { Refusal } from '#domain/core/refusal.ts'
import { isoTime, systemClock } from '#platform/clock.ts'
import { openLog } from '#platform/log.ts'
import { isProblem, resolveSettings } from '#platform/given-settings.ts'
import { systemTimers } from '#platform/timers.ts'
import { openRootKey, writeRootKey, type RootKey } from '#plane/authority/root-key.ts'
import { makeRootCertificate, signIntermediate } from '#plane/authority/sign-intermediate.ts'
import { readPlaneConfig, type PlaneConfig } from '#plane/config/config.ts'
import { keyHostIn, keyHostSettings } from '#plane/config/key-settings.ts'
import { importFirstCa } from '#plane/foundation/first-ceremony.ts'
import { isKeyUnavailable, mayPass } from '#plane/keys/key-unavailable.ts'
import { openKeysElsewhere, type KeysElsewhere } from '#plane/keys/keys-elsewhere.ts'

const longestFile = 64 * 1024

/** The tokens and the Vault of this machine, closed again after `run`. */
const withTokens = async <T>(
  { env }: Cli,
  options: GlobalOptions,
  run: (elsewhere: KeysElsewhere) => Promise<T>,
): Promise<T> => {
  const { values, problems } = resolveSettings(keyHostSettings, { options, env, file: null })
  const [problem] = problems
  if (problem !== undefined) throw usageFailure(`${problem}.`)
  const places = keyHostIn(values)
  if (isProblem(places)) throw usageFailure(`${places.problem}.`)
  const elsewhere = openKeysElsewhere(
    { ...places, credentialsFolder: env['CREDENTIALS_DIRECTORY'] ?? null },
    { clock: systemClock, timers: systemTimers },
  )
  try {
    return await run(elsewhere)
  } catch (error) {
    if (!isKeyUnavailable(error)) throw error
    const { code, message, next } = error
    const sentence =
      code === 'PKCS11_UNAVAILABLE' ? 'The key in the token cannot be used.' : 'The key in Vault cannot be used.'
    const exit = mayPass(error) ? exitCodes.tryLater : exitCodes.misconfigured
    throw new Failure({ exit, code, sentence, detail: message, next })
  } finally {
    elsewhere.close()
  }
}

type RootOptions = GlobalOptions & {
  readonly rootKey: string
  readonly domain: string
  readonly pathLength: string
  readonly lifetime: string
}

/** Makes the root where its key stays. */
export const caRoot = async (cli: Cli, options: RootOptions): Promise<void> => {
  const { key, taken } = await withTokens(cli, options, async (elsewhere) => {
    const found: RootKey = await writeRootKey(options.rootKey, elsewhere)
    if (found.kind === 'refused') throw usageFailure(`${found.detail}.`)
    const made = await makeRootCertificate({
      key: found.key,
      domain: options.domain,
      pathLen: options.pathLength === '1' ? 1 : 2,
      lifetimeMs: durationOption('--lifetime', options.lifetime),
      nowMs: cli.clock.nowMs(),
      random: cli.random,
    })
    return { key: made, taken: found.wasThere }
  })
  const print = printer(cli, options)
  print.answer({ certificate: key.pem, root: `sha256:${key.sha256}` }, () => pemLines(key.pem))
  if (taken) print.note('the key was there already, and was taken')
  print.note(`root sha256:${key.sha256}`)
  print.note('next: on the plane: muster ca init --root-certificate FILE')
}

type SignOptions = GlobalOptions & {
  readonly rootKey: string
  readonly rootCert: string
  readonly request: string
  readonly lifetime: string
}

/** The half of the ceremony that happens where the root key is; no plane is asked. */
export const caSign = async (cli: Cli, options: SignOptions): Promise<void> => {
  const rootCertificatePem = await readText(cli, options.rootCert, longestFile)
  const requestPem = await readText(cli, options.request, longestFile)
  const signed = await withTokens(cli, options, async (elsewhere) =>
    signIntermediate({
      rootKey: await openRootKey(options.rootKey, elsewhere, (file) => readText(cli, file, longestFile)),
      rootCertificatePem,
      requestPem,
      lifetimeMs: durationOption('--lifetime', options.lifetime),
      nowMs: cli.clock.nowMs(),
      random: cli.random,
    }),
  )
  if (typeof signed !== 'string') throw notDone(signed, 'The request was not signed.')
  const print = printer(cli, options)
  print.answer({ certificate: signed }, () => pemLines(signed))
  print.note('next: on the plane: muster ca import FILE')
}

/** Before the first start there is no plane that could be asked. */
export const caImportFirst = async (cli: Cli, options: GlobalOptions, file: string): Promise<void> => {
  const certificate = await readText(cli, file, 16_384)
  const { config, imported } = await importedFirst(cli, options, certificate)
  if ('code' in imported) throw notDone(imported, 'The certificate does not answer the request of this plane.')
  const { rootFingerprint, issuer, role, notAfterMs } = imported
  const root = `sha256:${rootFingerprint}`
  const print = printer(cli, options)
  print.answer({ root, issuer, role, not_after: isoTime(notAfterMs) }, () =>
    renderFacts([
      ['root', root],
      [role, `${issuer}, until ${isoTime(notAfterMs)}`],
    ]),
  )
  print.note('Record the root where machines and workers are made: agent builds, worker builds, cloud-init templates')
  print.note(`next: muster plane --data ${config.dataFolder}`)
}

const importedFirst = async (cli: Cli, options: GlobalOptions, certificate: string) => {
  let config: PlaneConfig | undefined
  try {
    config = readPlaneConfig(options, cli.env)
    return { config, imported: await importFirstCa(config, certificate, openLog(config, 'plane')) }
  } catch (error) {
    throw planeTrouble(error, { ...(config !== undefined && { config }), help: 'muster ca import --help' })
  }
}

const notDone = ({ code, detail }: Refusal, sentence: string): Failure =>
  new Failure({
    exit: exitCodes.refused,
    code,
    sentence,
    detail,
    next: 'Make a new request on the plane: muster ca request',
  })
