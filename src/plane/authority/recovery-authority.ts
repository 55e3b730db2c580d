// The trust of recovery: a CA of its own for the recovery listener, and the keys that sign statements and derive bearer
// tokens. It is meant to outlive the runtime's. It makes what is missing and renews itself; an operator replaces nothing here.

import type { ServerIdentity } from './authority.ts'
import {
  type RecoveryRoot,
  recoveryRootsInService,
  storedRecoveryRoots,
  recoverySigner,
  whyRecoveryRootDue,
  type RecoveryParts,
} from './recovery-roots.ts'
import { verifySignature, generateKey, keyId, loadPrivateKey, type PrivateKey } from '#pki/keys.ts'
import { toPem } from '#pki/pem.ts'
import { entry } from '#domain/core/change.ts'
import type { IssuerRow } from '#domain/ca/issuer.ts'
import { authorityActor } from './issuer-book.ts'
import type { KeyCustody } from '#plane/keys/key-custody.ts'
import { findServerCertificate, renewServerCertificate, type ServerKind } from './server-identity.ts'
import { keyMissing } from '#plane/keys/key-inventory.ts'
import { commitOnce } from '#plane/core/commit-decision.ts'
import { takeTurns } from '#plane/core/turns.ts'
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import { sameBytes, sha256Hex } from '#platform/bytes.ts'
import type { Random } from '#platform/random.ts'

export type RecoveryAuthority = {
  /** What the recovery listener presents: key and chain (leaf, recovery root), PEM. */
  serverIdentity(): ServerIdentity
  onServerIdentity(run: (identity: ServerIdentity) => void): void
  /** PEM of the roots nodes are given for recovery, newest first. */
  roots(): readonly string[]
  /** The same, as operators are shown them. */
  storedRoots(): readonly RecoveryRoot[]
  /** Further warnings for operators, in sentences. */
  warnings(): readonly string[]
  /** Renews the listener's certificate at half life, and makes the successor of a recovery root at its. Cheap when nothing is due. */
  maintain(): Promise<void>
  /** SubjectPublicKeyInfo, DER, base64; the first signs, the rest are still taken. */
  statementKeys(): readonly string[]
  signStatement(bytes: Uint8Array): Uint8Array
  isOurStatement(bytes: Uint8Array, signature: Uint8Array): boolean
  /**
   * What a counter is authenticated by: only this domain checks one, so it is a MAC. While a replica of the release before runs,
   * which knows no MAC, it is a signature.
   */
  sealCounter(bytes: Uint8Array): Uint8Array
  isOurCounter(bytes: Uint8Array, seal: Uint8Array): boolean
  /** The bearer token that goes with this counter and key: the same question has the same answer, so nothing but its hash is stored. */
  bearerFor(about: { readonly node: string; readonly counter: number; readonly spki: string }): string
}

/** The domain has to have been made. */
export const openRecoveryAuthority = async (
  core: RecoveryParts['core'],
  given: Omit<RecoveryParts, 'core'>,
): Promise<RecoveryAuthority> => {
  const parts: RecoveryParts = { ...given, core }
  const inTurn = takeTurns()
  const listeners: ((identity: ServerIdentity) => void)[] = []
  // Everything here is made once for the domain, by whichever plane is first.
  const found = await parts.core.store.exclusively(async () => {
    await parts.custody.refresh()
    // Made with the first recovery root: where there is one, they were lost.
    const hadRecovery = (await parts.core.store.issuers()).some(({ value }) => value.role === 'recovery')
    const mayMake = (role: 'statement' | 'bearer'): boolean => !hadRecovery || parts.replacing?.includes(role) === true
    const made = await makeMissingSecrets(parts.custody, parts.core.random, mayMake)
    const warnings = made === null ? [] : await journalStatementKey(parts, made)
    return { warnings, roots: await recoveryRootsInService(parts, null) }
  })
  let statements = openStatements(parts.custody)
  let { roots } = found
  let signer = recoverySigner(parts, roots)
  let pems = roots.map(pemOf)
  let held = await findServerCertificate(parts, kindOf(roots))

  const renew = async (): Promise<void> => {
    const renewed = await renewServerCertificate(parts, kindOf(roots), { signer, held, cause: 'if due' })
    if (renewed === null) return
    held = renewed
    for (const listener of listeners) listener(renewed.identity)
  }
  await renew().catch((error: unknown) => {
    // As with the runtime's: an aged one is better than a plane that does not start.
    if (held === null) throw error
    parts.core.log.error({ err: error }, 'the certificate of the recovery listener could not be renewed')
  })
  const identityNow = (): ServerIdentity => {
    if (held === null) throw keyMissing({ role: 'recovery', id: roots[0]?.id ?? null })
    return held.identity
  }
  identityNow()
  const counterMac = counterMacIn(parts.custody)
  const signStatement = (bytes: Uint8Array): Uint8Array => statements.keys[0].sign(bytes)
  const isOurStatement = (bytes: Uint8Array, signature: Uint8Array): boolean =>
    statements.keys.some(({ spki }) => verifySignature(spki, bytes, signature))
  parts.names.onChange(() => {
    inTurn(renew).catch((error: unknown) =>
      parts.core.log.warn(
        { err: error },
        'the certificate of the recovery listener could not be renewed; it is tried again',
      ),
    )
  })

  return {
    serverIdentity: identityNow,
    onServerIdentity: (run) => void listeners.push(run),
    roots: () => pems,
    storedRoots: () => roots.map((row): RecoveryRoot => ({ row, signing: row.id === signer?.row.id })),
    warnings: () => found.warnings,
    maintain: () =>
      inTurn(async () => {
        await parts.custody.refresh()
        const fencingToken = parts.core.store.replicas.leadership()
        roots = await storedRecoveryRoots(parts)
        if (fencingToken !== null && whyRecoveryRootDue(parts, roots) !== null) {
          roots = await parts.core.store.exclusively(() => recoveryRootsInService(parts, fencingToken))
        }
        signer = recoverySigner(parts, roots)
        pems = roots.map(pemOf)
        if (!statements.areThoseOf(parts.custody)) statements = openStatements(parts.custody)
        await renew()
      }),
    statementKeys: () => statements.spkis,
    signStatement,
    isOurStatement,
    sealCounter: (bytes) => (parts.core.store.unfinishedUpgrade() === null ? counterMac(bytes) : signStatement(bytes)),
    isOurCounter: (bytes, seal) =>
      seal.length === macBytes ? sameBytes(counterMac(bytes), seal) : isOurStatement(bytes, seal),
    bearerFor: bearerIn(parts.custody),
  }
}

const openStatements = (custody: KeyCustody) => {
  const keys = statementKeysIn(custody)
  const names = statementNames(custody)
  return {
    keys,
    spkis: keys.map(({ spki }) => Buffer.from(spki).toString('base64')),
    areThoseOf: (now: KeyCustody): boolean => statementNames(now) === names,
  }
}

const statementNames = (custody: KeyCustody): string =>
  custody
    .names()
    .flatMap(({ role, id }) => (role === 'statement' ? [id] : []))
    .sort()
    .join(' ')

const lostStatementKey =
  'The key that signs statements was gone and has been made anew: machines take the new one with their next renewal; one whose certificate ends before that needs muster node repair-bundle or a new token'

/** The first is made with the first recovery root: where there is a root, one was lost. */
const journalStatementKey = async (
  { core: { store, clock, feed, log } }: RecoveryParts,
  made: string,
): Promise<readonly string[]> => {
  const lost = (await store.issuers()).some(({ value }) => value.role === 'recovery')
  const body = { role: 'statement', custody: 'file', why: lost ? 'key gone' : 'first one' }
  const journaled = entry(authorityActor, clock.nowMs(), 'ca.created', { issuer: made }, body)
  await commitOnce({ store, feed }, { reads: [], writes: [], entries: [journaled] })
  if (!lost) return []
  log.warn({ key: made }, lostStatementKey)
  return [lostStatementKey]
}

const pemOf = ({ der }: IssuerRow): string => toPem('CERTIFICATE', Buffer.from(der, 'base64'))

const kindOf = (roots: readonly IssuerRow[]): ServerKind => ({
  purpose: 'recovery',
  above(issuer) {
    const root = roots.find(({ id }) => id === issuer)
    return root === undefined ? null : [Buffer.from(root.der, 'base64')]
  },
})

// The two secrets of recovery that are no authority: the key that signs statements, and the secret bearer tokens are
// derived from. Made when they are first needed, sealed like every key.

/**
 * The id of the statement key that had to be made; null: there was one. `mayMake`: throws where one is gone that has been
 * there, unless a person asked for another.
 */
const makeMissingSecrets = async (
  custody: KeyCustody,
  random: Random,
  mayMake: (role: 'statement' | 'bearer') => boolean,
): Promise<string | null> => {
  for (const role of ['bearer', 'statement'] as const) {
    if (kept(custody, role).length === 0 && !mayMake(role)) throw keyMissing({ role, id: null })
  }
  if (kept(custody, 'bearer').length === 0) {
    const secret = random.bytes(32).toString('hex')
    await custody.keep({ role: 'bearer', id: sha256Hex(secret).slice(0, 16) }, secret)
  }
  if (kept(custody, 'statement').length > 0) return null
  const key = generateKey('p256')
  const made = keyId(key.spki)
  await custody.keep({ role: 'statement', id: made }, key.pkcs8Pem())
  return made
}

/** The first signs; statements of the others are still taken. */
type StatementKeys = readonly [PrivateKey, ...PrivateKey[]]

const statementKeysIn = (custody: KeyCustody): StatementKeys => {
  const [first, ...others] = kept(custody, 'statement').map(loadPrivateKey)
  if (first === undefined) throw new Error('there is no key that signs statements')
  return [first, ...others]
}

type BearerFor = (about: { readonly node: string; readonly counter: number; readonly spki: string }) => string

/** The same question has the same answer for as long as the secret is kept. */
export const bearerIn = (custody: KeyCustody): BearerFor => {
  const key = bearerSecretIn(custody)
  return ({ node, counter, spki }) =>
    `recover_${createHmac('sha256', key).update(`muster bearer\n${node}\n${counter}\n${spki}`).digest('base64url')}`
}

/** Shorter than any signature of ours. */
const macBytes = 32

const counterMacIn = (custody: KeyCustody): ((bytes: Uint8Array) => Uint8Array) => {
  const key = bearerSecretIn(custody)
  return (bytes) => createHmac('sha256', key).update('muster counter\n').update(bytes).digest()
}

const bearerSecretIn = (custody: KeyCustody): KeyObject => {
  const [secret] = kept(custody, 'bearer')
  if (secret === undefined) throw new Error('there is no secret that bearer tokens are derived from')
  return createSecretKey(Buffer.from(secret, 'hex'))
}

const kept = (custody: KeyCustody, role: 'statement' | 'bearer'): readonly string[] =>
  custody
    .names()
    .filter((name) => name.role === role)
    .sort((a, b) => (a.id < b.id ? -1 : 1))
    .flatMap((name) => custody.find(name) ?? [])
