// A throw-away leaf of Vault's PKI: signed, judged as every leaf is, and revoked. What is wrong with it shows which setting is wrong.

import type { SigningOrder } from '#domain/core/certificate.ts'
import { policyLine } from '#domain/issuers/vault-line.ts'
import { roleLine, type RoleNeeds, type VaultRole } from '#domain/issuers/vault-role.ts'
import { makeCsr } from '#pki/csr.ts'
import type { PrivateKey } from '#pki/keys.ts'
import { fromPem } from '#pki/pem.ts'
import { judgeReturned, type ViolatedField } from '#pki/returned-certificate.ts'
import type { SettingFault, TestSample, Unsent, Unsigned } from './outside-signer.ts'
import { revokeThere, signThere, type VaultPki } from './vault-pki.ts'
import { isDenied, VaultFault } from '#plane/outside/vault-reply.ts'
import type { Vault } from '#plane/outside/vault-server.ts'

export type TestedVault = VaultPki & {
  readonly vault: Pick<Vault, 'ask' | 'login' | 'aheadMs'>
  /** DER: what its leaves have to hang under. */
  readonly outsideRoots: readonly Uint8Array[]
  /** Of the profiles that name this issuer. */
  readonly samples: () => Promise<readonly TestSample[]>
}

export type LeafTested = { readonly faults: readonly SettingFault[]; readonly revokes: boolean }

export type Permission = { readonly path: string; readonly capability: string }

export const policyFault = ({ path, capability }: Permission): SettingFault => ({
  setting: 'policy',
  why: `the login may not ${capability} ${path}`,
  fix: policyLine(path, capability),
})

const unstoredMs = 5 * 60_000

type Leaf = {
  readonly name: string
  readonly role: VaultRole | null
  readonly needs: RoleNeeds
  readonly order: SigningOrder
  readonly sample: TestSample
  readonly key: PrivateKey
  readonly stores: boolean
}

export const testLeaf = async (
  pki: TestedVault,
  { name, role, needs, order, sample, key, stores }: Leaf,
  signal: AbortSignal,
): Promise<LeafTested> => {
  const path = `${pki.mount}/roles/${name}`
  // What can not be revoked ends soon.
  const lifetimeMs = stores ? order.lifetimeMs : Math.min(order.lifetimeMs, unstoredMs)
  const short = { ...order, lifetimeMs }
  const request = fromPem('CERTIFICATE REQUEST', makeCsr(key, 'issuer-test'))
  if (request === null) throw new Error('a request of our own making is malformed')
  const signed = await signThere(pki, { order: short, kind: sample.kind, request }, signal)
  if (signed.kind !== 'returned') return { faults: [notSigned(pki, signed, { name, role, needs })], revokes: true }
  const verdict = judgeReturned({
    order: short,
    chain: signed.chain,
    roots: pki.outsideRoots,
    withdrawn: [],
    serial: null,
    isOnRecord: false,
    answeredAtMs: pki.clock.nowMs(),
    clock: { aheadMs: pki.vault.aheadMs(), toleranceMs: sample.toleranceMs },
    leastLifetimeMs: stores ? sample.leastLifetimeMs : lifetimeMs / 2,
  })
  const fixOf = (shown: string[]): string => roleLine(path, role, needs, shown)
  const faults: SettingFault[] = []
  if (verdict.kind === 'violates') {
    for (const { field, why } of verdict.violations) faults.push(faultOf(field, why, pki, path, fixOf))
  } else if (verdict.shortByMs > 0) {
    faults.push({ setting: `max_ttl of ${path}`, why: shortened(verdict.shortByMs), fix: fixOf(['max_ttl']) })
  }
  const serial = verdict.kind === 'violates' ? verdict.serial : verdict.leaf.serial
  if (serial === null || !stores) return { faults, revokes: stores }
  const unrevoked = await notRevoked(pki, serial, signal)
  return { faults: unrevoked === null ? faults : [...faults, unrevoked], revokes: unrevoked === null }
}

const notSigned = (
  { mount }: VaultPki,
  { kind, why }: Unsent | Unsigned,
  { name, role, needs }: Pick<Leaf, 'name' | 'role' | 'needs'>,
): SettingFault => {
  const path = `${mount}/sign/${name}`
  if (kind === 'unsent') return { setting: 'address', why, fix: 'vault status' }
  if (isDenied(why)) return policyFault({ path, capability: 'update' })
  return { setting: path, why, fix: roleLine(`${mount}/roles/${name}`, role, needs) }
}

/** Null: it was revoked. */
const notRevoked = async (pki: VaultPki, serial: string, signal: AbortSignal): Promise<SettingFault | null> => {
  const path = `${pki.mount}/revoke`
  try {
    const outcome = await revokeThere(pki, serial, signal)
    if (outcome === 'revoked') return null
    return { setting: path, why: 'Vault does not know what it has just signed', fix: `vault list ${pki.mount}/certs` }
  } catch (error) {
    if (!(error instanceof VaultFault)) throw error
    if (isDenied(error.message)) return policyFault({ path, capability: 'update' })
    return { setting: path, why: error.message, fix: `vault list ${pki.mount}/certs` }
  }
}

const shortened = (byMs: number): string =>
  `certificates are ${Math.round(byMs / 60_000)} minutes shorter than they are ordered; the mount or its CA allows no more`

/** Which setting of Vault leads to what is wrong in a certificate. */
const faultOf = (
  field: ViolatedField,
  why: string,
  { mount }: VaultPki,
  path: string,
  fixOf: (shown: string[]) => string,
): SettingFault => {
  switch (field) {
    case 'chain':
      return {
        setting: `issuer_ref of ${path}`,
        why: `it signs with a CA that does not hang under a root on record: ${why}`,
        fix: `vault list ${mount}/issuers`,
      }
    case 'extensions':
      return {
        setting: `${mount}/config/urls`,
        why,
        fix: `vault write ${mount}/config/urls delta_crl_distribution_points=`,
      }
    case 'notAfter':
      return { setting: `max_ttl of ${path}`, why, fix: fixOf(['max_ttl']) }
    case 'notBefore':
      return { setting: `not_before_duration of ${path}`, why, fix: fixOf(['not_before_duration']) }
    case 'subject':
      return { setting: `organization, ou of ${path}`, why, fix: fixOf(['organization', 'ou']) }
    case 'subjectAltName':
      return {
        setting: `use_csr_sans, allowed_uri_sans of ${path}`,
        why,
        fix: fixOf(['use_csr_sans', 'allowed_uri_sans']),
      }
    case 'keyUsage':
    case 'extendedKeyUsage':
      return {
        setting: `${field === 'keyUsage' ? 'key_usage' : 'ext_key_usage'} of ${path}`,
        why,
        fix: fixOf(['key_usage']),
      }
    case 'encoding':
      return {
        setting: `issuer_ref of ${path}`,
        why: `what it signs cannot be read (${why}): its CA needs a key on P-256 or P-384, or an Ed25519 key`,
        fix: `vault write ${mount}/root/generate/internal common_name=NAME key_type=ec key_bits=256 ttl=87600h`,
      }
    case 'publicKey':
    case 'basicConstraints':
    case 'serial':
      return { setting: path, why: `${field}: ${why}`, fix: fixOf([]) }
  }
}
