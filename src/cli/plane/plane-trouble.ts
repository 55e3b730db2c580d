// Why a plane did not start, for the person who started it.

import * as path from 'node:path'
import { ConfigProblem, listenersOf, type PlaneConfig } from '#plane/config/config.ts'
import { damageOf } from '#plane/foundation/store-damage.ts'
import { errno } from '#platform/files.ts'
import { isKeyUnavailable, mayPass } from '#plane/keys/key-unavailable.ts'
import { sqliteTrouble } from '#platform/sqlite.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { Failure, usageFailure } from '#cli/kit/failure.ts'
import { defaultDataFolder } from '#cli/kit/connection.ts'
import { shellWord } from '#cli/kit/printable.ts'

/**
 * `config`: what it was started with, where it came that far. `file`: the settings file of that, if there was one. `help`: of the
 * command, where that is not `plane`.
 */
type PlaneRun = { readonly config?: PlaneConfig; readonly file?: string | null; readonly help?: string }

export const planeTrouble = (
  error: unknown,
  { config, file = null, help = 'muster plane --help' }: PlaneRun = {},
): unknown => {
  if (error instanceof ConfigProblem) return usageFailure(`${error.message}.`, help)
  if (!(error instanceof Error)) return error
  const failure = (code: string, detail: string, hint: string): Failure => {
    const next = config === undefined ? hint : asPlaneRan(hint, config)
    const sentence = 'The plane cannot run like this.'
    const set = file === null ? '' : `; settings are from ${file}`
    return new Failure({ exit: exitCodes.misconfigured, code, sentence, detail: detail + set, next })
  }
  // The database may be there in a moment: a supervisor should try again.
  if (errno(error) === 'DATABASE_UNREACHABLE' && 'next' in error) {
    const { message: detail, next } = error
    const sentence = 'The plane cannot run now.'
    return new Failure({ exit: exitCodes.tryLater, code: 'DATABASE_UNREACHABLE', sentence, detail, next: String(next) })
  }
  if (errno(error) === 'DISK_FAILED') {
    const next = 'Check the disk (dmesg, smartctl); started again, the plane reads what is there and verifies it'
    const sentence = 'The plane has stopped: its disk did not keep what was written.'
    return new Failure({ exit: exitCodes.fault, code: 'DISK_FAILED', sentence, detail: error.message, next })
  }
  // A supervisor should try again once token or Vault may be back; and never with a PIN or a login that was refused.
  if (isKeyUnavailable(error) && mayPass(error)) {
    const { code, message: detail, next } = error
    return new Failure({ exit: exitCodes.tryLater, code, sentence: 'The plane cannot run now.', detail, next })
  }
  // The error of the store already names the next step.
  if ('next' in error && typeof error.next === 'string') {
    return failure(errno(error) ?? 'STORE_REFUSED', error.message, error.next)
  }
  const passing = passingTrouble(error)
  if (passing !== null) {
    const sentence = 'The plane cannot run now; nothing was changed.'
    return new Failure({ exit: exitCodes.tryLater, sentence, detail: error.message, ...passing })
  }
  const damage = damageOf(error)
  if (damage !== null) return failure(damage.code, damage.message, damage.next)
  switch (errno(error)) {
    case 'EADDRINUSE': {
      const option = listenOption(error, config)
      const other = option ?? '--node-listen HOST:PORT --recovery-listen HOST:PORT --operator-listen'
      const tail = option === null ? ' HOST:PORT --status-listen HOST:PORT' : ' HOST:PORT'
      const next = `Another process listens there (ss -ltnp). Stop it, or listen elsewhere: ${other}${tail}`
      return failure('ADDRESS_IN_USE', withOption(error.message, option), next)
    }
    case 'EADDRNOTAVAIL': {
      const detail = withOption(error.message, listenOption(error, config))
      return failure('ADDRESS_NOT_HERE', detail, 'Listen on an address of this machine, or on 0.0.0.0')
    }
    case 'EACCES':
    case 'EPERM':
      return failure(
        'NOT_PERMITTED',
        error.message,
        'Start it as the user who owns the data folder, on ports above 1023',
      )
    default:
      return error
  }
}

/** Which option names the address that could not be had; null: not known. */
const listenOption = (error: Error, config: PlaneConfig | undefined): string | null => {
  const { address, port } = error as { readonly address?: unknown; readonly port?: unknown }
  const named = config === undefined ? [] : listenersOf(config).filter((one) => one.listen.port === port)
  return (named.find(({ listen }) => listen.host === address) ?? named[0])?.option ?? null
}

const withOption = (message: string, option: string | null): string =>
  option === null ? message : `${message} (${option})`

/** Of a database file that may well be whole: it must not be taken for damaged, and replaced. Null: nothing of that kind. */
const passingTrouble = (error: unknown): { readonly code: string; readonly next: string } | null => {
  for (let cause = error, depth = 0; cause instanceof Error && depth < 8; cause = cause.cause, depth++) {
    switch (sqliteTrouble(cause)) {
      case 'full':
        return { code: 'DISK_FULL', next: 'Make room on the disk of the data folder, then start it again' }
      case 'disk':
        return {
          code: 'DISK_TROUBLE',
          next: 'muster.db cannot be read or written now: check the disk (dmesg, mount) and the owner of every file in the data folder, then start it again. Do not restore a backup over it',
        }
      case 'busy':
        return { code: 'STORE_BUSY', next: 'Another process holds muster.db: end it, then start the plane again' }
      default:
    }
  }
  return null
}

// Commands that an error of a plane names find what that plane was started on: its data folder, its store, its sealing key.

type RanWith = Pick<PlaneConfig, 'dataFolder' | 'store' | 'sealKeyFile' | 'issuerKey'>

/** Those that look for the store as a plane does. */
const named = /muster (ca replace-lost(?: (?:issuing|recovery|statement|bearer|journal))+|store status)\b/g

export const asPlaneRan = (text: string, config: RanWith): string =>
  text.replace(named, (command: string, what: string) => {
    const isReplacing = what.startsWith('ca ')
    const more = [...optionsOf(config, isReplacing), ...(isReplacing ? ['--reason REASON'] : [])]
    return [command, ...more].join(' ')
  })

const optionsOf = ({ dataFolder, store, sealKeyFile, issuerKey }: RanWith, opensKeys: boolean): readonly string[] => [
  ...(dataFolder === path.resolve(defaultDataFolder) ? [] : [`--data ${shellWord(dataFolder)}`]),
  ...(store.kind === 'sqlite' ? [] : ['--store postgres']),
  ...(opensKeys && sealKeyFile !== null ? [`--seal-key ${shellWord(path.resolve(sealKeyFile))}`] : []),
  ...(opensKeys && issuerKey === 'memory' ? ['--issuer-key memory'] : []),
]
