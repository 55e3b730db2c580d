// Why no plane answered, and the command that helps.

import { errno } from '#platform/files.ts'
import type { Connection } from './connection.ts'
import { exitCodes } from './exit-codes.ts'
import { Failure } from './failure.ts'

/** `folderExists`: whether the data folder is there; only asked of a socket. */
export const unreachable = (connection: Connection, error: unknown, folderExists: boolean): Failure => {
  const code = errno(error)
  const because = error instanceof Error ? error.message : String(error)
  const { where } = connection
  if (code === 'ETIMEDOUT') {
    return failure('The plane did not answer in time.', because, 'Look at its log; then try again', exitCodes.tryLater)
  }
  if (code === 'EMSGSIZE')
    return failure('The answer was longer than this command reads.', because, null, exitCodes.fault)
  if (where.kind === 'url') return urlFailure(where.url, code, because)

  const start = `muster plane --data ${where.dataFolder}`
  switch (code) {
    case 'ENOENT':
      return folderExists
        ? failure(`No plane is running on ${where.dataFolder}.`, `${where.socketPath} is not there`, start)
        : failure(
            `There is no data folder ${where.dataFolder}.`,
            'a plane makes one at its first start; --data or MUSTER_DATA names another',
            start,
          )
    case 'ECONNREFUSED':
      return failure(
        `No plane is running on ${where.dataFolder}.`,
        'one ran there before and left its socket behind',
        start,
      )
    case 'EACCES':
    case 'EPERM':
      return failure(
        `You may not use the plane of ${where.dataFolder}.`,
        `${where.socketPath} belongs to another user`,
        'Run this as the user of the plane, or over its address: --url URL --key-file FILE',
        exitCodes.notAllowed,
      )
    default:
      return failure(`The plane of ${where.dataFolder} could not be reached.`, because, start)
  }
}

const urlFailure = (url: string, code: string | null, because: string): Failure => {
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return failure(
      `${url} is not a name of the plane that answers there.`,
      because,
      'Use a name its certificate has (on the plane: muster ca show), or start it with --server-name NAME',
      exitCodes.notAllowed,
    )
  }
  // What speaks TLS hangs up on what does not.
  if (code === 'ECONNRESET' && url.startsWith('http:')) {
    const next = `If the plane runs with --operator-tls: --url ${url.replace('http:', 'https:')} --ca FILE (on the plane: muster ca bundle)`
    return failure(`What listens at ${url} hangs up.`, because, next)
  }
  const untrusted = code !== null && /^(ERR_TLS|UNABLE_|SELF_SIGNED|DEPTH_ZERO|CERT_|ERR_SSL)/.test(code)
  return untrusted
    ? failure(
        `${url} does not prove to be a plane you trust.`,
        `${because} (${code})`,
        'Give the root certificate of the domain: --ca FILE (on the plane: muster ca bundle)',
        exitCodes.notAllowed,
      )
    : failure(`Nothing answers at ${url}.`, because, 'Check the address, and that the plane runs there')
}

const failure = (
  sentence: string,
  detail: string,
  next: string | null,
  exit: Failure['exit'] = exitCodes.unavailable,
): Failure => new Failure({ exit, code: 'UNREACHABLE', sentence, detail, next })
