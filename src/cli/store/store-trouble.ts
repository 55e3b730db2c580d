// Why a store command did not do what it was asked for.

import { ConfigProblem } from '#plane/config/config.ts'
import { transferRefusal, type TransferRefusal } from '#plane/store/copy/transfer-refusal.ts'
import { exitCodes, type ExitCode } from '#cli/kit/exit-codes.ts'
import { Failure, usageFailure } from '#cli/kit/failure.ts'

/** `sentence`: what was not done, such as `Nothing was imported.` */
export const storeTrouble = (error: unknown, sentence: string): unknown => {
  if (error instanceof ConfigProblem) return usageFailure(`${error.message}.`)
  const refusal = transferRefusal(error)
  if (refusal === null) return error
  const { code, detail, next } = refusal
  return new Failure({ exit: exitOf(code), code, sentence, detail, next })
}

const exitOf = (code: TransferRefusal['code']): ExitCode => {
  switch (code) {
    case 'EXPORT_UNKNOWN':
    case 'EXPORT_DAMAGED':
    case 'FILE_EXISTS':
    case 'FILE_UNUSABLE':
    case 'OTHER_DOMAIN':
    case 'NOT_FOR_POSTGRES':
    case 'SEALING_KEY_MISSING':
    case 'SEALING_KEY_WRONG':
      return exitCodes.usage
    case 'NO_STORE':
      return exitCodes.notFound
    case 'JOURNAL_BROKEN':
    case 'JOURNAL_UNREADABLE':
      return exitCodes.journalBroken
    case 'STORE_FAULT':
      return exitCodes.unavailable
    case 'DISK_FULL':
    case 'STORE_DAMAGED':
      return exitCodes.fault
    case 'NOT_PERMITTED':
      return exitCodes.notAllowed
    case 'STORE_IN_USE':
    case 'DATA_FOLDER_IN_USE':
    case 'STOPPED':
      return exitCodes.tryLater
    default:
      return exitCodes.refused
  }
}
