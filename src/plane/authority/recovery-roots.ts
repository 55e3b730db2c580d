// The recovery roots. One is made at the first start, and at the first start on a data folder from before there was any. Its
// successor is made automatically at half life, so that every machine that is connected within ten years knows it.

import { readOf, type Change } from '#domain/core/change.ts'
import type { IssuerRow } from '#domain/ca/issuer.ts'
import { recoveryRootLifetimeMs } from '#pki/authority-certificates.ts'
import { commitOnce } from '#plane/core/commit-decision.ts'
import type { FencingToken } from '#plane/store/contract/replicas.ts'
import { keepKey, signerFrom, type CaSigner } from './ca-signer.ts'
import { authorityActor, issuerEntry } from './issuer-book.ts'
import { halfLifeMs } from './issuer-life.ts'
import { makeRecoveryRoot } from './make-issuer.ts'
import type { ReplaceableKey } from '#plane/keys/key-inventory.ts'
import type { ServerCertificateParts } from './server-identity.ts'

export type RecoveryParts = ServerCertificateParts & {
  /** Keys that are known to be lost and are to be made anew; left out: none is. */
  readonly replacing?: readonly ReplaceableKey[]
}

export type RecoveryRoot = { readonly row: IssuerRow; readonly signing: boolean }

/** Newest first; those that have ended are not among them. */
export const storedRecoveryRoots = async (parts: RecoveryParts): Promise<readonly IssuerRow[]> => {
  const nowMs = parts.core.clock.nowMs()
  return (await parts.core.store.issuers())
    .map(({ value }) => value)
    .filter(({ role, retiredAtMs, notAfterMs }) => role === 'recovery' && retiredAtMs === null && notAfterMs > nowMs)
    .sort((a, b) => b.notBeforeMs - a.notBeforeMs)
}

/**
 * Why one more is to be made; null: it is not. One in the store whose key is gone has no successor made for it: every machine
 * trusts it, and its key may be put back. Only who asks for it (`muster ca replace-lost recovery`) gets a new one.
 */
export const whyRecoveryRootDue = (
  parts: RecoveryParts,
  roots: readonly IssuerRow[],
): 'first one' | 'half life' | 'replaces a lost one' | null => {
  const newest = roots.find((row) => isHere(parts, row))
  if (newest === undefined && parts.replacing?.includes('recovery') === true && roots.length > 0)
    return 'replaces a lost one'
  if (newest === undefined) return roots.length === 0 ? 'first one' : null
  return parts.core.clock.nowMs() < halfLifeMs(newest) ? null : 'half life'
}

/** As above, and makes one where it is due. Runs exclusively. */
export const recoveryRootsInService = async (
  parts: RecoveryParts,
  fencingToken: FencingToken | null,
): Promise<readonly IssuerRow[]> => {
  await parts.custody.refresh()
  const roots = await storedRecoveryRoots(parts)
  const why = whyRecoveryRootDue(parts, roots)
  return why === null ? roots : [await addRoot(parts, why, fencingToken), ...roots]
}

/** The oldest usable one: a machine that was away for long knows only that one. */
export const recoverySigner = (parts: RecoveryParts, roots: readonly IssuerRow[]): CaSigner | null => {
  const here = roots.filter((row) => isHere(parts, row))
  const lasting = here.filter(
    ({ notAfterMs }) => notAfterMs - parts.core.clock.nowMs() >= parts.options.serverLifetimeMs,
  )
  const row = lasting.at(-1) ?? here[0]
  return row === undefined ? null : signerFrom(parts.custody, row)
}

const isHere = ({ custody }: RecoveryParts, { id }: IssuerRow): boolean => custody.has({ role: 'recovery', id })

const addRoot = async (parts: RecoveryParts, why: string, fencingToken: FencingToken | null): Promise<IssuerRow> => {
  const { clock, random } = parts.core
  const { custody, options } = parts
  const nowMs = clock.nowMs()
  const { domain } = options
  const made = makeRecoveryRoot({ domain, custody: 'file', lifetimeMs: recoveryRootLifetimeMs, nowMs, random })
  // Durable before the commit that names it; a crash in between leaves a file that nothing names.
  await keepKey(custody, made)
  const change: Change = {
    reads: [readOf('issuer', made.row.id, null)],
    writes: [{ put: 'issuer', value: made.row }],
    entries: [issuerEntry('ca.created', made.row, authorityActor, nowMs, { why })],
  }
  const outcome = await commitOnce(parts.core, change, fencingToken)
  if (outcome === 'lost-race') throw new Error('the id of the new recovery root is taken')
  parts.core.log.info({ issuer: made.row.id, why }, 'created a recovery root')
  return made.row
}
