// Whether a role of Vault's PKI signs what is ordered under a profile, and nothing else: organisation, organisational unit, key usage and
// extended key usage come from the role alone, and so does the permission for every name.

import type { SigningOrder } from '#domain/core/certificate.ts'
import type { KeyType } from '#domain/core/profile.ts'
import { type VaultValue, vaultWrite } from './vault-line.ts'

/** As Vault answers a read of it. Settings that a release of Vault does not have are absent. */
export type VaultRole = Readonly<Record<string, unknown>>

export type RoleNeeds = Pick<
  SigningOrder,
  'subject' | 'uriSans' | 'dnsSans' | 'ipSans' | 'usage' | 'lifetimeMs' | 'for'
> & {
  readonly keyTypes: readonly KeyType[]
}

export type RoleFault = { readonly setting: string; readonly why: string }

type Rule = {
  readonly setting: string
  readonly isRight: (role: VaultRole, needs: RoleNeeds) => boolean
  readonly right: (role: VaultRole, needs: RoleNeeds) => VaultValue
  readonly why: string
}

/** Vault dates back from its own clock; the plane takes five minutes from its own, and clocks differ. */
const mostBackdatingSeconds = 240

const is = (setting: string, wanted: (needs: RoleNeeds) => VaultValue, why: string): Rule => ({
  setting,
  isRight: (role, needs) => isSame(role[setting], wanted(needs)),
  right: (_role, needs) => wanted(needs),
  why,
})

const always = (value: VaultValue) => (): VaultValue => value

const nameOnly = 'it would be in the subject, and nobody has ordered it'

const rules: readonly Rule[] = [
  {
    setting: 'key_type',
    isRight: ({ key_type: type, key_bits: bits }, { keyTypes }) =>
      type === 'any' ||
      (type === 'ed25519' && keyTypes.every((one) => one === 'ed25519')) ||
      (type === 'ec' && keyTypes.every((one) => one !== 'ed25519' && (numberOf(bits) ?? 0) <= curveBits[one])),
    right: always('any'),
    why: 'it refuses keys that the profile allows',
  },
  is('organization', ({ subject }) => orNone(subject.o), 'the subject has another organisation'),
  is('ou', ({ subject }) => orNone(subject.ou), 'the subject has another organisational unit'),
  ...['country', 'locality', 'province', 'street_address', 'postal_code'].map((one) => is(one, always([]), nameOnly)),
  {
    setting: 'key_usage',
    isRight: ({ key_usage: usages }) => listOf(usages).map(usageName).join() === 'digitalsignature',
    right: always(['DigitalSignature']),
    why: 'the key may be used for more or less than signatures',
  },
  flag('client_flag', 'client', 'ClientAuth'),
  flag('server_flag', 'server', 'ServerAuth'),
  is('code_signing_flag', always(false), 'it adds an extended key usage'),
  is('email_protection_flag', always(false), 'it adds an extended key usage'),
  {
    setting: 'ext_key_usage',
    isRight: (role, { usage }) =>
      listOf(role['ext_key_usage']).every((one) => purposesOf(usage).includes(usageName(one))),
    right: always([]),
    why: 'it adds an extended key usage',
  },
  is('ext_key_usage_oids', always([]), 'it adds an extended key usage'),
  is('use_csr_common_name', always(false), "the node's request would choose the name"),
  is('use_csr_sans', always(false), "the node's request would choose the names"),
  {
    setting: 'serial_number_source',
    // Releases before 1.19 do not have it; `allowed_serial_numbers` is what counts there.
    isRight: ({ serial_number_source: from }) => from === undefined || from === 'json',
    right: always('json'),
    why: "the node's request would choose a part of the subject",
  },
  is('allowed_serial_numbers', always([]), "the node's request could choose a part of the subject"),
  is('allowed_user_ids', always([]), "the node's request could choose a part of the subject"),
  is('cn_validations', always(['disabled']), 'common names of nodes are not always names of hosts'),
  {
    setting: 'require_cn',
    isRight: ({ require_cn: required }, { subject }) => required !== true || subject.cn !== '',
    right: always(false),
    why: 'the profile has no common name',
  },
  {
    setting: 'allowed_uri_sans',
    isRight: (role, { uriSans }) =>
      uriSans.every((uri) => listOf(role['allowed_uri_sans']).some((pattern) => isMatch(pattern, uri))),
    right: (role, needs) => [
      ...new Set([...listOf(role['allowed_uri_sans']), ...needs.uriSans.map(uriPattern(needs))]),
    ],
    why: 'it refuses the URI that names the node',
  },
  {
    setting: 'allow_any_name',
    isRight: (role, { dnsSans }) =>
      dnsSans.length === 0 || role['allow_any_name'] === true || listOf(role['allowed_domains']).length > 0,
    right: always(true),
    why: 'it refuses the names of programs',
  },
  {
    setting: 'allow_ip_sans',
    isRight: (role, { ipSans }) => ipSans.length === 0 || role['allow_ip_sans'] === true,
    right: always(true),
    why: 'it refuses the addresses of programs',
  },
  is('generate_lease', always(false), 'a certificate would be revoked as soon as the login that asked for it ends'),
  is('not_after', always(''), 'every certificate would end at the same time, and a request for a lifetime is refused'),
  {
    setting: 'max_ttl',
    isRight: ({ max_ttl: most }, { lifetimeMs }) => most === 0 || (numberOf(most) ?? 0) * 1000 >= lifetimeMs,
    right: (_role, { lifetimeMs }) => Math.ceil(lifetimeMs / 1000),
    why: 'certificates would be shorter than the profile orders them',
  },
  {
    setting: 'not_before_duration',
    isRight: ({ not_before_duration: back }) => (numberOf(back) ?? 30) <= mostBackdatingSeconds,
    right: always(30),
    why: 'certificates would begin more than five minutes before they are signed',
  },
]

export const faultsOfRole = (role: VaultRole, needs: RoleNeeds): readonly RoleFault[] =>
  rules.flatMap(({ setting, isRight, why }) => (isRight(role, needs) ? [] : [{ setting, why }]))

/**
 * The command that makes the role right. It replaces the role as a whole, so it repeats what was set there and is not ours to change; a new role
 * (null) may sign nothing beyond what is needed. `shown`: settings that turned out to be wrong in what was signed.
 */
export const roleLine = (
  path: string,
  role: VaultRole | null,
  needs: RoleNeeds,
  shown: readonly string[] = [],
): string => {
  const before = role ?? newRole
  const values = new Map<string, VaultValue>(Object.entries(before).map(([name, value]) => [name, valueOf(value)]))
  for (const { setting, isRight, right } of rules) {
    if (shown.includes(setting) || !isRight(before, needs)) values.set(setting, right(before, needs))
  }
  // Only a role for one type of key has a length.
  if (values.get('key_type') === 'any') values.delete('key_bits')
  const said = [...values].filter(([name, value]) => !isDefault(name, value))
  return vaultWrite(path, Object.fromEntries(said.toSorted(([a], [b]) => (a < b ? -1 : 1))))
}

/** What Vault sets where nothing is said, if that is not nothing. */
const defaults: Readonly<Record<string, VaultValue>> = {
  allow_ip_sans: true,
  allow_localhost: true,
  allow_wildcard_certificates: true,
  client_flag: true,
  enforce_hostnames: true,
  issuer_ref: 'default',
  not_before_duration: 30,
  require_cn: true,
  serial_number_source: 'json-csr',
  server_flag: true,
  use_csr_common_name: true,
  use_csr_sans: true,
}

const newRole: VaultRole = {
  ...defaults,
  allow_ip_sans: false,
  allow_localhost: false,
  allow_wildcard_certificates: false,
}

const isDefault = (setting: string, value: VaultValue): boolean =>
  typeof value === 'object'
    ? value.length === 0 && setting !== 'key_usage'
    : value === (defaults[setting] ?? empty(value))

const empty = (of: VaultValue): VaultValue => (typeof of === 'boolean' ? false : typeof of === 'number' ? 0 : '')

function flag(setting: string, side: 'client' | 'server', listed: string): Rule {
  const isWanted = (usage: SigningOrder['usage']): boolean => usage === side || usage === 'both'
  return {
    setting,
    isRight: (role, { usage }) =>
      isWanted(usage)
        ? role[setting] === true || listOf(role['ext_key_usage']).some((one) => usageName(one) === listed.toLowerCase())
        : role[setting] !== true,
    right: (_role, { usage }) => isWanted(usage),
    why: 'the extended key usage is not what is ordered',
  }
}

const curveBits: Record<KeyType, number> = { p256: 256, p384: 384, ed25519: 0 }

const purposesOf = (usage: SigningOrder['usage']): readonly string[] =>
  usage === 'both' ? ['clientauth', 'serverauth'] : [`${usage}auth`]

const usageName = (text: string): string => text.trim().toLowerCase()

const orNone = (text: string): readonly string[] => (text === '' ? [] : [text])

const numberOf = (value: unknown): number | null => (typeof value === 'number' ? value : null)

const listOf = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : []

const valueOf = (value: unknown, otherwise: VaultValue = listOf(value)): VaultValue =>
  typeof value === 'boolean' || typeof value === 'number' || typeof value === 'string' ? value : otherwise

/** Absent in a release that does not have it, and null where nothing is set: empty. */
const isSame = (found: unknown, wanted: VaultValue): boolean => {
  if (typeof wanted !== 'object') return valueOf(found, empty(wanted)) === wanted
  const entries = listOf(found)
  return entries.length === wanted.length && wanted.every((one, at) => entries[at] === one)
}

/** Of all nodes, where it names one. */
const uriPattern =
  ({ for: subject }: RoleNeeds) =>
  (uri: string): string =>
    'node' in subject ? uri.replace(`/node/${subject.node}`, '/node/*') : uri

/** Vault's patterns: `*` stands for anything, nothing included. */
const isMatch = (pattern: string, text: string): boolean => {
  const [head = '', ...rest] = pattern.split('*')
  if (rest.length === 0) return text === head
  if (!text.startsWith(head)) return false
  const tail = rest.pop() ?? ''
  let at = head.length
  for (const part of rest) {
    const found = text.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return text.length - tail.length >= at && text.endsWith(tail)
}
