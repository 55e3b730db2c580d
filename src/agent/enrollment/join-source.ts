// Where the join string comes from, and when it counts as used.

import { sha256Hex } from '#platform/bytes.ts'
import { readFileIfAny, removeFile } from '#platform/files.ts'
import { isOrdinaryFile } from '#platform/paths.ts'
import type { JoinString } from '#wire/core/join-string.ts'
import type { AgentParts } from '#agent/core/agent-parts.ts'
import { anotherRoot, isOfAnotherRoot, parseJoinFile, type AgentConfig } from '#agent/core/config.ts'
import type { Identity } from '#agent/state/credentials.ts'

export type FoundJoin =
  | { readonly kind: 'join'; readonly join: JoinString }
  | { readonly kind: 'none' }
  | { readonly kind: 'unreadable'; readonly why: string }

/** `former`: the identity the agent already has. A token that it has used does not let it join again. */
export const findJoin = (config: AgentConfig, former: Identity | null): FoundJoin => {
  const found = readSource(config, former)
  if (found.kind !== 'join') return found
  if (isOfAnotherRoot(found.join, config.pinnedRoot)) return { kind: 'unreadable', why: anotherRoot }
  const { secret } = found.join
  // A token that is not shown is not used up either.
  if (config.joinMethod === 'hardware') return { kind: 'join', join: { ...found.join, secret: null } }
  if (secret === null)
    return { kind: 'unreadable', why: 'the join string has no token in it, and the join method is token' }
  if (former !== null && former.origin.usedSecretHash === sha256Hex(secret)) return { kind: 'none' }
  return found
}

const readSource = (config: AgentConfig, former: Identity | null): FoundJoin => {
  if (config.join.kind === 'given') return { kind: 'join', join: config.join.join }
  const { path } = config.join
  try {
    const text = readFileIfAny(path)
    if (text === null) return withoutFile(config, former)
    const join = parseJoinFile(text)
    return join === null ? { kind: 'unreadable', why: `${path} does not hold a join string` } : { kind: 'join', join }
  } catch (error) {
    return { kind: 'unreadable', why: error instanceof Error ? error.message : `${path} cannot be read` }
  }
}

/** Hardware needs no secret: where the plane is, and how to recognise it, is remembered from the first time. */
const withoutFile = (config: AgentConfig, former: Identity | null): FoundJoin => {
  if (config.joinMethod !== 'hardware' || former === null) return { kind: 'none' }
  const { url, rootFingerprint } = former.origin
  return { kind: 'join', join: { url, domain: former.domain, rootFingerprint, secret: null, marked: former.marked } }
}

/**
 * Deletes the file that the join string came from. Only once the identity is kept: until then a repeated request
 * needs it. Only with the token in it that is used up: an operator may have put another one there.
 */
export const dropUsedJoin = ({ config, log }: Pick<AgentParts, 'config' | 'log'>, identity: Identity): void => {
  const file = config.join.kind === 'file' ? config.join.path : config.join.envFile
  if (file === null) return
  try {
    const secret = parseJoinFile(readFileIfAny(file) ?? '')?.secret ?? null
    if (secret === null || sha256Hex(secret) !== identity.origin.usedSecretHash) return
    if (!isOrdinaryFile(file)) throw new Error(`${file} is a link, or not a file`)
    removeFile(file)
    log.info({ file }, 'the file with the used join string was deleted')
  } catch (error) {
    const why = error instanceof Error ? error.message : 'unknown'
    log.warn({ file, why }, 'the file with the used join string could not be deleted; delete it')
  }
}
