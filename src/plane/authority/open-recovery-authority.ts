// The built-in trust of recovery: it makes what is missing, and looks after itself. Nobody has to replace anything here.

import { verifySignature } from '#pki/keys.ts'
import { toPem } from '#pki/pem.ts'
import { entry } from '#domain/core/change.ts'
import type { IssuerRecord } from '#domain/ca/issuer.ts'
import type { ServerIdentity } from './authority.ts'
import { byItself } from './issuer-book.ts'
import type { RecoveryAuthority } from './recovery-authority.ts'
import type { KeyCustody } from '#plane/keys/key-custody.ts'
import { bearerIn, makeMissingSecrets, statementKeysIn } from './recovery-keys.ts'
import {
  recoveryRootsInService,
  recoveryRootsOnRecord,
  recoverySigner,
  whyRecoveryRootDue,
  type RecoveryDeps,
  type RecoveryRoot,
} from './recovery-roots.ts'
import { findServerCertificate, renewServerCertificate, canonicalNames, type ServerKind } from './server-identity.ts'
import { keyMissing } from '#plane/keys/key-inventory.ts'
import { commitOnce } from '#plane/core/commit-decision.ts'
import { takeTurns } from '#plane/core/turns.ts'

/** The domain has to have been made. */
export const openRecoveryAuthority = async (given: RecoveryDeps): Promise<RecoveryAuthority> => {
  const serverNames = canonicalNames(given.options.serverNames)
  const deps: RecoveryDeps = { ...given, options: { ...given.options, serverNames } }
  const inTurn = takeTurns()
  const listeners: ((identity: ServerIdentity) => void)[] = []
  // Everything here is made once for the domain, by whichever plane is first.
  const found = await deps.store.exclusively(async () => {
    await deps.custody.refresh()
    // Made with the first recovery root: where there is one, they were lost.
    const hadRecovery = (await deps.store.issuers()).some(({ value }) => value.role === 'recovery')
    const mayMake = (role: 'statement' | 'bearer'): boolean => !hadRecovery || deps.replacing?.includes(role) === true
    const made = await makeMissingSecrets(deps.custody, deps.random, mayMake)
    const warnings = made === null ? [] : await tellStatementKey(deps, made)
    return { warnings, roots: await recoveryRootsInService(deps, null) }
  })
  let statements = openStatements(deps.custody)
  let { roots } = found
  let signer = recoverySigner(deps, roots)
  let pems = roots.map(pemOf)
  let held = await findServerCertificate(deps, kindOf(roots))

  const renew = async (): Promise<void> => {
    const renewed = await renewServerCertificate(deps, kindOf(roots), { signer, held, cause: 'if due' })
    if (renewed === null) return
    held = renewed
    for (const listener of listeners) listener(renewed.identity)
  }
  await renew().catch((error: unknown) => {
    // As with the runtime's: an aged one is better than a plane that does not start.
    if (held === null) throw error
    deps.log.error({ err: error }, 'the certificate of the recovery listener could not be renewed')
  })
  const identityNow = (): ServerIdentity => {
    if (held === null) throw keyMissing({ role: 'recovery', id: roots[0]?.id ?? null })
    return held.identity
  }
  identityNow()

  return {
    serverIdentity: identityNow,
    onServerIdentity: (run) => void listeners.push(run),
    roots: () => pems,
    rootsOnRecord: () => roots.map((record): RecoveryRoot => ({ record, signing: record.id === signer?.record.id })),
    warnings: () => found.warnings,
    maintain: () =>
      inTurn(async () => {
        await deps.custody.refresh()
        const fence = deps.store.replicas.leadership()
        roots = await recoveryRootsOnRecord(deps)
        if (fence !== null && whyRecoveryRootDue(deps, roots) !== null) {
          roots = await deps.store.exclusively(() => recoveryRootsInService(deps, fence))
        }
        signer = recoverySigner(deps, roots)
        pems = roots.map(pemOf)
        if (!statements.areThoseOf(deps.custody)) statements = openStatements(deps.custody)
        await renew()
      }),
    statementKeys: () => statements.spkis,
    signStatement: (bytes) => statements.keys[0].sign(bytes),
    isOurStatement: (bytes, signature) => statements.keys.some(({ spki }) => verifySignature(spki, bytes, signature)),
    bearerFor: bearerIn(deps.custody),
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
const tellStatementKey = async (
  { store, clock, feed, log }: RecoveryDeps,
  made: string,
): Promise<readonly string[]> => {
  const lost = (await store.issuers()).some(({ value }) => value.role === 'recovery')
  const body = { role: 'statement', custody: 'file', why: lost ? 'none here' : 'first start' }
  const told = entry(byItself, clock.nowMs(), 'ca.created', { issuer: made }, body)
  await commitOnce({ store, feed }, { reads: [], writes: [], entries: [told] })
  if (!lost) return []
  log.warn({ key: made }, lostStatementKey)
  return [lostStatementKey]
}

const pemOf = ({ der }: IssuerRecord): string => toPem('CERTIFICATE', Buffer.from(der, 'base64'))

const kindOf = (roots: readonly IssuerRecord[]): ServerKind => ({
  purpose: 'recovery',
  above(issuer) {
    const root = roots.find(({ id }) => id === issuer)
    return root === undefined ? null : [Buffer.from(root.der, 'base64')]
  },
})
