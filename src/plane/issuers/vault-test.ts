// Whether Vault is set up for what is ordered there: its roles are read, its policy is asked for, and a throw-away leaf is signed. Each fault names
// the setting and what makes it right.

import { roleFor } from '#domain/issuers/named-issuer.ts'
import { faultsOfRole, roleLine, type RoleNeeds, type VaultRole } from '#domain/issuers/vault-role.ts'
import { generateKey } from '#pki/keys.ts'
import { IssuerFault } from '#plane/outside/issuer-client.ts'
import type { Abilities, SettingFault, TestSample } from './outside-signer.ts'
import type { VaultPki } from './vault-pki.ts'
import { textsOf, VaultFault, type VaultReply } from '#plane/outside/vault-reply.ts'
import { type LeafTested, type Permission, policyFault, type TestedVault, testLeaf } from './vault-test-leaf.ts'

/** `abilities`: null where nothing was learned of them. */
type Tested = { readonly faults: readonly SettingFault[]; readonly abilities: Abilities | null }

export const testVault = async (pki: TestedVault, signal: AbortSignal): Promise<Tested> => {
  try {
    return await testSamples(pki, signal)
  } catch (error) {
    const fault = connectionFault(pki, error)
    if (fault === null) throw error
    return { faults: [fault], abilities: null }
  }
}

const testSamples = async (pki: TestedVault, signal: AbortSignal): Promise<Tested> => {
  const faults: SettingFault[] = []
  let stores = true
  let revokes = true
  for (const sample of await pki.samples()) {
    const role = roleFor(pki.roles, sample.kind)
    if (role === null) {
      faults.push(noRole(sample))
      continue
    }
    const found = await testRole(pki, role, sample, signal)
    faults.push(...found.faults)
    stores &&= found.stores
    revokes &&= found.revokes
  }
  const permissions = await permissionsOf(pki, signal)
  const lists = permissions.every(({ path, may }) => path !== `${pki.mount}/certs` || may)
  faults.push(...permissions.filter(({ may }) => !may).map(policyFault))
  const abilities = { takesSerial: false, revokes: revokes && stores, lists: lists && stores }
  return { faults: distinct(faults), abilities }
}

/** Null: that is none of the settings, or it has been stopped. */
const connectionFault = ({ vault }: TestedVault, error: unknown): SettingFault | null => {
  if (error instanceof VaultFault) {
    const { code, message: why } = error
    if (code === 'login') return { setting: 'login', why, fix: vault.login.fix }
    if (code === 'sealed') return { setting: 'address', why, fix: 'vault operator unseal' }
    // Before the first request there is a login.
    return error.cause instanceof IssuerFault ? unreached(error.cause, why) : null
  }
  return error instanceof IssuerFault ? unreached(error, error.message) : null
}

const unreached = ({ code }: IssuerFault, why: string): SettingFault | null => {
  if (code === 'stopped') return null
  return code === 'untrusted'
    ? { setting: 'server roots', why, fix: 'openssl s_client -showcerts -connect HOST:PORT' }
    : { setting: 'address', why, fix: 'vault status' }
}

const noRole = ({ kind, what }: TestSample): SettingFault => ({
  setting: 'role',
  why: `no role is named for ${what}`,
  fix: `muster issuer set ISSUER --role ${kind}=ROLE`,
})

type RoleTested = LeafTested & { readonly stores: boolean }

const testRole = async (
  pki: TestedVault,
  name: string,
  sample: TestSample,
  signal: AbortSignal,
): Promise<RoleTested> => {
  const path = `${pki.mount}/roles/${name}`
  const key = generateKey(sample.keyTypes[0] ?? 'p256')
  const order = sample.order(key.spki)
  const needs: RoleNeeds = { ...order, keyTypes: sample.keyTypes }
  const reply = await pki.vault.ask({ method: 'GET', path }, signal)
  if (reply.status === 404) return { faults: [missing(reply, pki, path, needs)], stores: true, revokes: true }
  // Without the right to read it, what it signs still shows.
  const role: VaultRole | null = reply.status === 200 ? reply.data : null
  const unread = reply.status === 403 ? [policyFault({ path, capability: 'read' })] : []
  const wrong = role === null ? [] : faultsOfRole(role, needs)
  const stores = role?.['no_store'] !== true
  if (wrong.length > 0) {
    const fix = roleLine(path, role, needs)
    const faults = wrong.map(({ setting, why }) => ({ setting: `${setting} of ${path}`, why, fix }))
    return { faults, stores, revokes: true }
  }
  const leaf = await testLeaf(pki, { name, role, needs, order, sample, key, stores }, signal)
  return { faults: [...unread, ...leaf.faults], revokes: leaf.revokes, stores }
}

const missing = (reply: VaultReply, { mount }: VaultPki, path: string, needs: RoleNeeds): SettingFault =>
  reply.said.includes('no handler for route')
    ? {
        setting: 'mount',
        why: `there is no secrets engine at ${mount}`,
        fix: `vault secrets enable -path=${mount} -max-lease-ttl=87600h pki`,
      }
    : { setting: path, why: 'there is no such role', fix: roleLine(path, null, needs) }

type Allowed = Permission & { readonly may: boolean }

/** Vault says what a login may do; a login that may not even ask that is tested by what fails. */
const permissionsOf = async ({ vault, mount, roles }: VaultPki, signal: AbortSignal): Promise<readonly Allowed[]> => {
  const names = [...new Set(Object.values(roles))]
  const wanted = [
    ...names.flatMap((name) => [
      [`${mount}/sign/${name}`, 'update'],
      [`${mount}/roles/${name}`, 'read'],
    ]),
    [`${mount}/revoke`, 'update'],
    [`${mount}/certs`, 'list'],
  ].map(([path = '', capability = '']) => ({ path, capability }))
  const json = { paths: wanted.map(({ path }) => path) }
  const reply = await vault.ask({ method: 'POST', path: 'sys/capabilities-self', json }, signal)
  return wanted.map((one) => {
    const may = textsOf(reply.data?.[one.path])
    return { ...one, may: reply.status !== 200 || may.includes(one.capability) || may.includes('root') }
  })
}

/** One role may serve several profiles. */
const distinct = (faults: readonly SettingFault[]): readonly SettingFault[] => [
  ...new Map(faults.map((fault) => [`${fault.setting}\n${fault.why}\n${fault.fix}`, fault])).values(),
]
