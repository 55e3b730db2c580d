// The operator key and the roots to trust, read from their files. Neither ever travels in argv.

import { errno, readFileIfAny } from '#platform/files.ts'
import { pathExists } from '#platform/paths.ts'
import type { Connection } from './connection.ts'
import { exitCodes } from './exit-codes.ts'
import { Failure } from './failure.ts'
import { unreachable } from './unreachable.ts'

export const readKey = (connection: Connection): string => {
  const { where, keyFile } = connection
  const text = readOr(keyFile, (why) =>
    // Without the folder there is no plane either, which is the more helpful thing to say.
    where.kind === 'socket' && why === 'ENOENT' && !pathExists(where.dataFolder)
      ? unreachable(connection, Object.assign(new Error('no data folder'), { code: 'ENOENT' }), false)
      : keyFailure(`${keyFile}: ${keyTroubles[why] ?? why}`),
  )
  const key = text.trim()
  // Also keeps a wrong file, such as a private key, from being sent to a server.
  if (!/^muster_key_[A-Za-z0-9_-]{43}$/.test(key)) throw keyFailure(`${keyFile} does not hold an operator key`)
  return key
}

const keyTroubles: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'you may not read it; it is for the user the plane runs as',
}

const keyFailure = (detail: string): Failure =>
  new Failure({
    exit: exitCodes.notAllowed,
    code: 'OPERATOR_KEY_REQUIRED',
    sentence: 'This call needs an operator key.',
    detail,
    next: 'Pass --key-file FILE or set MUSTER_KEY_FILE',
  })

export const readCa = (connection: Connection): string | null =>
  connection.caFile === null
    ? null
    : readOr(
        connection.caFile,
        (why) =>
          new Failure({
            exit: exitCodes.usage,
            code: 'USAGE',
            sentence: 'The file of root certificates cannot be read.',
            detail: `${connection.caFile}: ${why}`,
            next: 'Give --ca FILE (on the plane: muster ca bundle)',
          }),
      )

const readOr = (file: string, failure: (why: string) => Failure): string => {
  let text: string | null
  try {
    text = readFileIfAny(file)
  } catch (error) {
    throw failure(errno(error) ?? 'unreadable')
  }
  if (text === null) throw failure('ENOENT')
  return text
}
