// `muster agent trust`: root lays down what the helper pins. The agent cannot: what it could change would be no pin.

import * as path from 'node:path'
import { readText } from '#cli/kit/arguments.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { Failure, usageFailure } from '#cli/kit/failure.ts'
import { printer } from '#cli/kit/print.ts'
import { keyId, keyTypeOfSpki } from '#pki/keys.ts'
import { allFromPem, toPem } from '#pki/pem.ts'
import { makeFolder, processOwner, replaceFile } from '#platform/files.ts'
import { pathExists } from '#platform/paths.ts'
import { faultOfPath, ownTrust, type Trust } from '#platform/trusted-path.ts'
import { mostStatementKeys } from '#wire/core/task-statements.ts'

type TrustOptions = GlobalOptions & { readonly statements?: string; readonly to: string }

const longestFile = 16_384

export const agentTrust = async (cli: Cli, options: TrustOptions): Promise<void> => {
  if (options.statements === undefined)
    throw usageFailure('Say which keys: --statements FILE.', 'Get them with muster ca bundle --statements')
  const keys = keysIn(await readText(cli, options.statements, longestFile))
  const file = path.resolve(options.to)
  const fault = layDown(file, keys, ownTrust())
  if (fault !== null) throw untrusted(fault)
  const ids = keys.map(keyId)
  const print = printer(cli, options)
  print.answer({ file, keys: ids }, () => ids)
  const has = `${file} has ${keys.length === 1 ? 'this key' : 'these keys'}`
  print.note(`${has}: by them the helper verifies tasks, and starts services only as the plane has signed them`)
}

/** Null: they are there, durably. Else why not, and nothing was changed. */
export const layDown = (file: string, keys: readonly Uint8Array[], trust: Trust): string | null => {
  const folder = path.dirname(file)
  try {
    if (!pathExists(folder)) makeFolder(folder, 0o755)
    const fault = faultOfPath(folder, trust, { kind: 'folder', links: 'followed' })
    if (fault !== null) return fault
    // In one step: a helper that reads it meanwhile sees either the old keys or the new ones.
    replaceFile(file, keys.map((spki) => toPem('PUBLIC KEY', spki)).join(''), 0o644)
    return null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** Each of a type that statements are signed with; anything else in the file is a mistake that a helper would find too late. */
export const keysIn = (text: string): readonly Uint8Array[] => {
  const keys = allFromPem('PUBLIC KEY', text) ?? []
  const fits = keys.length > 0 && keys.length <= mostStatementKeys && keys.every((key) => keyTypeOfSpki(key) !== null)
  if (fits) return keys
  throw usageFailure(
    `The file has no statement keys: one to ${mostStatementKeys} blocks PUBLIC KEY (PEM) are expected.`,
    'Get them with muster ca bundle --statements',
  )
}

const untrusted = (detail: string): Failure =>
  new Failure({
    exit: exitCodes.misconfigured,
    code: 'PLACE_UNSAFE',
    sentence: 'The keys cannot be laid down where only root can change them.',
    detail,
    next:
      processOwner().uid === 0
        ? 'Choose a folder below which only root can write: muster agent trust --statements FILE --to PATH; name PATH as statement_keys in [tasks] of agent.toml'
        : 'Run it as root: sudo muster agent trust --statements FILE',
  })
