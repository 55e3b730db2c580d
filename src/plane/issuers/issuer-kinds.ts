// step-ca and Vault behind one interface: how a signer is made of a row and its secrets, and which secrets the plane makes itself.

import { createPrivateKey, X509Certificate } from 'node:crypto'
import type { StepCaAccess, VaultAccess } from '#domain/issuers/outside-issuer.ts'
import { loadPrivateKey } from '#pki/keys.ts'
import { parseCertificate } from '#pki/parse-certificate.ts'
import { fromPem, toPem } from '#pki/pem.ts'
import { readProvisionerKey } from '#pki/private-jwk.ts'
import type { Core } from '#plane/core/core.ts'
import type { Store } from '#plane/store/contract/store.ts'
import type { IssuerKinds, OpenSigner, SignerRequest } from './open-outside-issuers.ts'
import type { Secrets } from './issuer-secrets.ts'
import {
  isCredentialDue,
  makeRenewalCredential,
  makeRenewalRoot,
  type RenewalCredential,
} from './renewal-credential.ts'
import { openStepCa } from './step-ca.ts'
import { openVaultIssuer } from './vault-issuer.ts'
import type { VaultLogin } from '#plane/outside/vault-login.ts'
import { openVault } from '#plane/outside/vault-server.ts'

type KindParts = Pick<Core, 'store' | 'clock' | 'random' | 'timers'>

export const issuerKinds = (core: KindParts, domain: string): IssuerKinds => ({
  unfit(access, secrets) {
    if (access.kind === 'step-ca') {
      const key = readProvisionerKey(secrets['provisioner_key'] ?? '')
      return key.kind === 'malformed' ? { name: 'provisioner_key', why: key.why } : null
    }
    return access.login.kind === 'certificate' ? unfitClient(secrets) : unfitText(secrets)
  },
  make: ({ kind }) => (kind === 'step-ca' ? renewalSecrets(core, domain) : {}),
  renew(access, secrets, longestMs) {
    if (access.kind !== 'step-ca') return null
    const nowMs = core.clock.nowMs()
    const { certificate } = credentialIn(secrets, names.key, names.certificate)
    if (!isCredentialDue(certificate, longestMs, nowMs)) return null
    const root = credentialIn(secrets, names.rootKey, names.root)
    return { ...secrets, ...credentialSecrets(makeRenewalCredential(root, { domain, nowMs, random: core.random })) }
  },
  async open(request) {
    const roots = await rootsOf(core.store, request)
    const { access } = request.issuer
    return access.kind === 'step-ca' ? openStep(core, request, access, roots) : openPki(core, request, access, roots)
  },
})

/** DER. */
const rootsOf = async (
  store: Pick<Store, 'issuers'>,
  { issuer }: SignerRequest,
): Promise<readonly [Uint8Array, ...Uint8Array[]]> => {
  const rows = (await store.issuers()).map(({ value }) => value)
  const [first, ...others] = rows
    .filter(({ id, compromisedAtMs }) => issuer.roots.includes(id) && compromisedAtMs === null)
    .map(({ der }) => new Uint8Array(Buffer.from(der, 'base64')))
  if (first === undefined) throw new Error(`no root of ${issuer.name} is trusted any more`)
  return [first, ...others]
}

// step-ca. What it renews by is made here, and is replaced by `issuer set` or before its end (renew-credentials.ts).

const names = {
  rootKey: 'renewal_root_key',
  root: 'renewal_root',
  key: 'renewal_key',
  certificate: 'renewal_certificate',
} as const

const renewalSecrets = ({ clock, random }: KindParts, domain: string): Secrets => {
  const request = { domain, nowMs: clock.nowMs(), random }
  const root = makeRenewalRoot(request)
  return {
    [names.rootKey]: root.key.pkcs8Pem(),
    [names.root]: pemOf(root),
    ...credentialSecrets(makeRenewalCredential(root, request)),
  }
}

const credentialSecrets = (credential: RenewalCredential): Secrets => ({
  [names.key]: credential.key.pkcs8Pem(),
  [names.certificate]: pemOf(credential),
})

const pemOf = ({ certificate }: RenewalCredential): string => toPem('CERTIFICATE', certificate.der)

const credentialIn = (secrets: Secrets, key: string, certificate: string): RenewalCredential => {
  const der = fromPem('CERTIFICATE', secrets[certificate] ?? '')
  const parsed = der === null ? null : parseCertificate(der)
  if (parsed?.kind !== 'certificate')
    throw new Error('the credential for renewals is not among the secrets of this issuer')
  return { key: loadPrivateKey(secrets[key] ?? ''), certificate: parsed }
}

const openStep = (
  { clock, random, timers }: KindParts,
  { issuer, secrets, mostConnections, samples }: SignerRequest,
  access: StepCaAccess,
  roots: readonly [Uint8Array, ...Uint8Array[]],
): OpenSigner => {
  const key = readProvisionerKey(secrets['provisioner_key'] ?? '')
  if (key.kind === 'malformed') throw new Error(`the key of the provisioner: ${key.why}`)
  const root = credentialIn(secrets, names.rootKey, names.root)
  const credential = credentialIn(secrets, names.key, names.certificate)
  const signer = openStepCa({
    ...{ clock, random, timers, roots, mostConnections },
    address: issuer.url,
    serverRoots: issuer.serverRoots,
    enrollment: { name: access.provisioner, keyId: key.keyId, key: key.key },
    renewal: { name: access.renewalProvisioner, root: root.certificate.der, credential: () => credential },
    revokes: issuer.abilities?.revokes ?? null,
    samples: async () => samples,
  })
  return {
    get abilities() {
      return signer.abilities
    },
    get aheadMs() {
      return signer.aheadMs
    },
    sign: signer.sign,
    revoke: signer.revoke,
    find: signer.find,
    test: signer.test,
    renewalRoot: pemOf(root),
    login: () => null,
    close: () => signer.close(),
  }
}

const openPki = (
  { clock, timers }: KindParts,
  { issuer, secrets, mostConnections, samples }: SignerRequest,
  { mount, roles, namespace, login }: VaultAccess,
  roots: readonly Uint8Array[],
): OpenSigner => {
  const vault = openVault(
    { clock, timers },
    { address: issuer.url, roots: issuer.serverRoots, namespace, login: loginWith(login, secrets), mostConnections },
  )
  const signer = openVaultIssuer({
    ...{ vault, clock, mount, roles, outsideRoots: roots, abilities: issuer.abilities },
    samples: async () => samples,
  })
  return {
    get abilities() {
      return signer.abilities
    },
    get aheadMs() {
      return signer.aheadMs
    },
    sign: signer.sign,
    revoke: signer.revoke,
    find: signer.find,
    test: signer.test,
    renewalRoot: null,
    login: () => vault.login.condition(),
    close: () => vault.close(),
  }
}

const loginWith = (login: VaultAccess['login'], secrets: Secrets): VaultLogin => {
  const secret = (name: string): string => secrets[name] ?? ''
  switch (login.kind) {
    case 'approle':
      return { ...login, secretId: secret('secret_id') }
    case 'certificate':
      return { ...login, key: secret('client_key'), cert: secret('client_certificate') }
    case 'token':
      return { kind: 'token', where: 'the secrets of this issuer', read: () => secret('token') }
  }
}

const unfitClient = (secrets: Secrets): ReturnType<IssuerKinds['unfit']> => {
  // Both are for TLS: they may have keys that Muster does not read otherwise.
  try {
    void createPrivateKey(secrets['client_key'] ?? '')
  } catch {
    return { name: 'client_key', why: 'it is not an unencrypted private key in PEM' }
  }
  try {
    void new X509Certificate(secrets['client_certificate'] ?? '')
    return null
  } catch {
    return { name: 'client_certificate', why: 'it is not a certificate in PEM' }
  }
}

/** They go into headers and JSON. */
const unfitText = (secrets: Secrets): ReturnType<IssuerKinds['unfit']> => {
  const found = Object.entries(secrets).find(([, text]) => !/^[\x21-\x7e]+$/.test(text))
  return found === undefined ? null : { name: found[0], why: 'it has spaces or other characters that it cannot have' }
}
