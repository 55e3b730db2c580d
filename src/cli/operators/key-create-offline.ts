import type { Role } from '#domain/core/principal.ts'
import { refusals } from '#domain/core/refusal-table.ts'
import { readPlaneConfig, type PlaneConfig } from '#plane/config/config.ts'
import { createKeyOffline } from '#plane/boot/create-key-offline.ts'
import { parseIsoTime } from '#platform/clock.ts'
import { openLog } from '#platform/log.ts'
import { callerName } from '#platform/this-process.ts'
import { keyNameShape, type CreateKeyAnswer, type CreateKeyRequest } from '#wire/operators/key-api.ts'
import type { Static } from 'typebox'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { Failure, usageFailure } from '#cli/kit/failure.ts'
import { planeTrouble } from '#cli/plane/plane-trouble.ts'

export type OfflineOptions = GlobalOptions & { readonly role: Role }

/** As the API takes it. Empty: the key has no end. */
export type KeyEnd = Pick<CreateKeyRequest, 'expires_ms' | 'expires_at'>
type KeyToMake = { readonly name: string; readonly end: KeyEnd }

export const keyMadeOffline = async (
  cli: Cli,
  options: OfflineOptions,
  asked: KeyToMake,
): Promise<Static<typeof CreateKeyAnswer>> => {
  if (!new RegExp(keyNameShape).test(asked.name)) throw usageFailure(`Not a name for a key: ${asked.name}`, help)
  const made = await make(cli, options, asked)
  if (made.kind === 'made') return { key: made.key, secret: made.secret }
  const { message: sentence, next } = refusals[made.code]
  throw new Failure({ exit: exitCodes.refused, code: made.code, sentence, detail: made.detail ?? null, next })
}

const help = 'muster key create --help'

const make = async (cli: Cli, options: OfflineOptions, { name, end }: KeyToMake) => {
  const { expires_ms: afterMs, expires_at: at } = end
  const expiresAtMs = afterMs === undefined ? parseIsoTime(at ?? '') : cli.clock.nowMs() + afterMs
  let config: PlaneConfig | undefined
  try {
    config = readPlaneConfig(options, cli.env)
    const log = openLog(config, 'plane')
    return await createKeyOffline(config, { name, role: options.role, expiresAtMs }, `host:${callerName()}`, log)
  } catch (error) {
    throw planeTrouble(error, config === undefined ? { help } : { config, help })
  }
}
