// The settings about keys that are elsewhere: how this host reaches tokens and Vault, and which keys are made there.

import type { Problem, Values } from '#platform/given-settings.ts'
import { pathSetting, textSetting, Wrong } from '#platform/setting.ts'
import {
  elsewhereOf,
  elsewhereOfPlace,
  faultOfReference,
  parseTokenReference,
  type NewKeyPlace,
} from '#plane/keys/key-reference.ts'
import type { ElsewherePlaces } from '#plane/keys/keys-elsewhere.ts'
import type { TransitHost, TransitLogin } from '#plane/keys/transit-host.ts'

const keyPlace = (text: string): 'file' | NewKeyPlace | Wrong => {
  if (text === 'file' || text === 'transit') return text
  const place = parseTokenReference(text)
  return 'kind' in place ? new Wrong(`takes file, pkcs11:token=LABEL or transit; ${place.why}`) : place
}

const keyReference = (text: string): string | Wrong => {
  const fault = faultOfReference(text)
  if (fault === null) return text
  return new Wrong(`takes a key such as pkcs11:token=vault;object=root or transit:key=root; ${fault.why}`)
}

const httpsAddress = (text: string): string | null => {
  const url = URL.canParse(text) ? new URL(text) : null
  const isBare = url !== null && url.username === '' && url.password === '' && url.search === '' && url.hash === ''
  return isBare && url.protocol === 'https:' ? url.href.replace(/\/+$/, '') : null
}

/** A path at Vault: each part is a name. */
const mountShape = /^\w[\w.-]{0,63}(?:\/\w[\w.-]{0,63}){0,3}$/

const mount = (text: string): string | null => (mountShape.test(text) ? text : null)

const loginShape = /^(approle|cert):([\w.-]{1,128})(?:@(.+))?$/

const login = (text: string): TransitLogin | null => {
  if (text === 'token') return { kind: 'token' }
  const [, kind, name, at] = loginShape.exec(text) ?? []
  if (kind === undefined || name === undefined || (at !== undefined && mount(at) === null)) return null
  return kind === 'approle'
    ? { kind: 'approle', roleId: name, mount: at ?? 'approle' }
    : { kind: 'certificate', role: name, mount: at ?? 'cert' }
}

/** How this host reaches keys that are elsewhere; also of commands that need no plane. */
export const keyHostSettings = {
  pkcs11Module: pathSetting(null, {
    value: 'file',
    variable: 'MUSTER_PKCS11_MODULE',
    meaning: 'PKCS#11 module (a shared library) of the tokens that keys are in',
    unset: 'no key is in a token',
    change: 'With keys in tokens. It is loaded into the process: it must be one that you trust.',
  }),
  pkcs11Pin: pathSetting(null, {
    value: 'path',
    variable: 'MUSTER_PKCS11_PIN',
    meaning: 'File of mode 0600 with the PIN of the tokens, or a folder with a file for each token, named by its label',
    unset: 'the systemd credential muster-pkcs11-pin',
    change: 'With `pkcs11_module`. A PIN that a token has refused is not tried again before this file has changed.',
  }),
  vaultAddress: textSetting(httpsAddress, null, {
    value: 'url',
    variable: 'MUSTER_VAULT_ADDRESS',
    takes: 'an address such as https://vault.example:8200',
    meaning: 'The Vault whose Transit engine has keys',
    unset: 'no key is in Vault',
    change:
      'With keys in Transit. A Vault that signs certificates itself is an issuer, and is not named here (`muster issuer add`).',
  }),
  vaultRoots: pathSetting(null, {
    value: 'file',
    variable: 'MUSTER_VAULT_ROOTS',
    meaning: 'Roots (PEM) that the server of `vault_address` is verified with. Those of the system are not trusted',
    unset: 'no key is in Vault',
    change: 'With `vault_address`.',
  }),
  vaultLogin: textSetting(login, 'token', {
    value: 'token|approle:role-id|cert:role',
    variable: 'MUSTER_VAULT_LOGIN',
    // A token that was given here by mistake is not repeated.
    isPrivate: true,
    takes: 'token, approle:ROLE-ID or cert:ROLE, the last two with @MOUNT where the auth method is mounted elsewhere',
    meaning: 'How to log in at `vault_address`',
    change: 'To an AppRole or a TLS certificate, which log in anew where a token would have ended.',
  }),
  vaultSecret: pathSetting(null, {
    value: 'file',
    variable: 'MUSTER_VAULT_SECRET',
    meaning: 'File of mode 0600 with the secret of that login: the token, the secret ID, or key and certificate (PEM)',
    unset: 'the systemd credential muster-vault-secret',
    change: 'With `vault_address`. It is read again when the login is refused.',
  }),
  vaultTransit: textSetting(mount, 'transit', {
    value: 'mount',
    variable: 'MUSTER_VAULT_TRANSIT',
    takes: 'the path of a secrets engine, such as transit',
    meaning: 'Where the Transit engine of `vault_address` is mounted',
    change: 'Where it has another path. A mount with keys of this domain alone makes for a short policy.',
  }),
} as const

const places = { value: 'file|pkcs11:token=label|transit', takes: 'file, pkcs11:token=LABEL or transit' } as const

export const keySettings = {
  ...keyHostSettings,
  caKey: textSetting(keyPlace, 'file', {
    ...places,
    variable: 'MUSTER_CA_KEY',
    meaning: 'Where the keys of CAs below the root are made that are kept: the issuing CA, and the domain CA',
    change:
      'To keep them in a token or in Vault. It holds for keys that are made from then on: `muster ca rotate` makes a new issuing key at once.',
  }),
  responderKey: textSetting(keyPlace, 'file', {
    ...places,
    variable: 'MUSTER_RESPONDER_KEY',
    meaning: 'Where the keys of OCSP responders are made, but for those of issuers with keys in memory',
    change:
      'Where a policy demands it. Answers are then signed at the pace of the token, and repeated for two minutes. It holds for issuing CAs that are made from then on.',
  }),
  taskSignerKey: textSetting(keyPlace, 'file', {
    ...places,
    variable: 'MUSTER_TASK_SIGNER_KEY',
    meaning: 'Where the keys of task signers are made. They are Ed25519: a token has to have CKM_EDDSA',
    change: 'Where a policy demands it. It holds for keys that are made from then on (`muster signer rotate`).',
  }),
  root: textSetting(keyReference, null, {
    value: 'pkcs11:token=label;object=label|transit:key=name',
    variable: 'MUSTER_ROOT',
    takes: 'a key such as pkcs11:token=vault;object=root or transit:key=root',
    meaning: 'At the first start: the key of the root, made in that token or in Vault, or taken from there',
    unset: 'the root key is sealed in the data folder',
    change: 'Before the first start, to have the root where it can be taken away from the plane.',
  }),
} as const

type KeyHostValues = Values<typeof keyHostSettings>
type KeyValues = Values<typeof keySettings>

/** How this host reaches keys that are elsewhere. */
export const keyHostIn = (values: KeyHostValues): Omit<ElsewherePlaces, 'credentialsFolder'> | Problem => {
  const vault = vaultIn(values)
  if (vault !== null && 'problem' in vault) return vault
  return { module: values.pkcs11Module.value, pin: values.pkcs11Pin.value, vault }
}

const vaultIn = (values: KeyHostValues): TransitHost | Problem | null => {
  const { vaultAddress, vaultRoots, vaultLogin, vaultSecret, vaultTransit } = values
  const [address, rootsFile] = [vaultAddress.value, vaultRoots.value]
  if (address !== null && rootsFile !== null)
    return { address, rootsFile, login: vaultLogin.value, secretFile: vaultSecret.value, mount: vaultTransit.value }
  if (address !== null) return { problem: `${vaultAddress.label} needs the roots of its server: --vault-roots FILE` }
  if (rootsFile !== null) return { problem: `${vaultRoots.label} needs the address of Vault: --vault-address URL` }
  return null
}

export type KeyPlaces = {
  /** Where the tokens are that keys are in, and the Vault. */
  readonly tokens: Omit<ElsewherePlaces, 'credentialsFolder'>
  /** Where keys of CAs are made that are kept; null: sealed here. */
  readonly caKeyPlace: NewKeyPlace | null
  readonly responderKeyPlace: NewKeyPlace | null
  readonly taskSignerKeyPlace: NewKeyPlace | null
  /** The reference of a key that is elsewhere, for the root of a new domain. */
  readonly rootKey: string | null
}

export const keyPlacesIn = (values: KeyValues): KeyPlaces | Problem => {
  const tokens = keyHostIn(values)
  if ('problem' in tokens) return tokens
  const { root, caKey, responderKey, taskSignerKey } = values
  const used = [
    { where: elsewhereOf(root.value ?? ''), label: root.label },
    ...[caKey, responderKey, taskSignerKey].map(({ value, label }) => ({
      where: value === 'file' ? null : elsewhereOfPlace(value),
      label,
    })),
  ]
  const inToken = used.find(({ where }) => where === 'pkcs11')
  if (inToken !== undefined && tokens.module === null)
    return { problem: `${inToken.label} needs the module of the token: --pkcs11-module FILE` }
  const inVault = used.find(({ where }) => where === 'transit')
  if (inVault !== undefined && tokens.vault === null)
    return { problem: `${inVault.label} needs the Vault: --vault-address URL --vault-roots FILE` }
  return {
    tokens,
    caKeyPlace: placeOf(caKey.value),
    responderKeyPlace: placeOf(responderKey.value),
    taskSignerKeyPlace: placeOf(taskSignerKey.value),
    rootKey: root.value,
  }
}

const placeOf = (value: 'file' | NewKeyPlace): NewKeyPlace | null => (value === 'file' ? null : value)
