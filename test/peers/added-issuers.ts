// Outside issuers as operators add them to a plane: a step-ca and a Vault, set up there with what the plane asks for, tested, and named by a
// profile.

import assert from 'node:assert/strict'
import { createPrivateKey } from 'node:crypto'
import * as https from 'node:https'
import { colonSerial } from '#domain/issuers/serial.ts'
import { toPem } from '#pki/pem.ts'
import type { IssuerTest, IssuerView } from '#wire/issuers/issuer-api.ts'
import { succeeded } from '../compliance/ask-plane.ts'
import type { Plane } from '../process/start-plane.ts'
import { documentedCommands } from './documented-block.ts'
import { runOpenssl } from './run-openssl.ts'
import type { CaConfig, StepCaServer } from './step-ca.ts'
import { runVaultCommands } from './vault-commands.ts'
import type { VaultPeer } from './vault-server.ts'
import { dataOf, mount, page, setUpPki } from './vault-set-up.ts'

type Asked = Pick<Plane, 'api'>

export type AddedIssuer = {
  readonly name: string
  /** What its leaves hang under, PEM. */
  readonly root: string
  /** What the plane was given to prove itself with. */
  readonly secrets: Readonly<Record<string, string>>
  /** By the issuer's own account. `serial`: hex. */
  isRevoked(serial: string): Promise<boolean>
}

/** Certificates of seconds, and a list of what is revoked. */
const forLives = (config: CaConfig): void => {
  config['crl'] = { enabled: true, generateOnRevoke: true }
  for (const { claims } of config.authority.provisioners) claims['minTLSCertDuration'] = '1s'
}

/** `at`: another address of it, of which `serverRoot` is the root. */
export const addStepCa = async (
  plane: Asked,
  server: StepCaServer,
  name: string,
  { at = server.address, serverRoot = server.files.root }: { at?: string; serverRoot?: string } = {},
): Promise<AddedIssuer> => {
  const { key, keyId } = server.provisioner
  const jwk = { ...createPrivateKey(key.pkcs8Pem()).export({ format: 'jwk' }), kid: keyId }
  const added = succeeded(
    await plane.api('POST', '/v1/issuers', {
      ...{ name, url: at, server_roots: [serverRoot], roots: [server.files.root] },
      step_ca: { provisioner: 'muster', renewal_provisioner: 'muster-renewal' },
      secrets: { provisioner_key: JSON.stringify(jwk) },
    }),
  ) as IssuerView
  await server.configure((config) => {
    config.authority.provisioners[1]['roots'] = Buffer.from(added.renewal_root ?? '').toString('base64')
    forLives(config)
  })
  return {
    ...{ name, root: server.files.root, secrets: { 'key of the provisioner': String(jwk.d) } },
    isRevoked: async (serial) => {
      const crl = await download(`${server.address}/1.0/crl`, server.files.root)
      const { text, status } = runOpenssl(['crl', '-inform', 'DER', '-noout', '-text'], crl)
      assert.equal(status, 0, text)
      return text.toLowerCase().includes(`serial number: ${colonSerial(serial).replaceAll(':', '')}`)
    },
  }
}

const download = (url: string, root: string): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const request = https.get(url, { ca: root, agent: false }, (response) => {
      const pieces: Buffer[] = []
      response.on('data', (piece: Buffer) => void pieces.push(piece))
      response.on('end', () => resolve(Buffer.concat(pieces)))
    })
    request.setTimeout(10_000, () => request.destroy(new Error(`${url} does not answer`)))
    request.on('error', reject)
  })

/** Logged in as a page of ours says, by AppRole. */
export const addVault = async (plane: Asked, peer: VaultPeer, name: string): Promise<AddedIssuer> => {
  const root = toPem('CERTIFICATE', await setUpPki(peer))
  const answers = await runVaultCommands(peer, documentedCommands(page, 'auth enable approle'))
  const given = (field: string): string =>
    answers.map(({ body }) => dataOf(body)[field]).find((value) => typeof value === 'string') ?? assert.fail(field)
  const secretId = given('secret_id')
  succeeded(
    await plane.api('POST', '/v1/issuers', {
      ...{ name, url: peer.address, server_roots: [peer.roots], roots: [root] },
      vault: { mount, roles: [{ profile: '*', role: 'gpu-cloud' }], auth: 'approle', role_id: given('role_id') },
      secrets: { secret_id: secretId },
    }),
  )
  return {
    ...{ name, root, secrets: { 'secret ID': secretId } },
    isRevoked: async (serial) => {
      const { body } = await peer.call('GET', `${mount}/cert/${colonSerial(serial)}`)
      return Number(dataOf(body)['revocation_time'] ?? 0) > 0
    },
  }
}

/** A profile like gpu-cloud, whose certificates this issuer signs from now on. */
export const signProfile = async (
  plane: Asked,
  issuer: Pick<AddedIssuer, 'name'>,
  profile: string,
  { set = {}, peer }: { set?: Readonly<Record<string, unknown>>; peer?: VaultPeer } = {},
): Promise<void> => {
  succeeded(await plane.api('POST', '/v1/profiles', { name: profile, from: 'gpu-cloud', set }))
  await signedBy(plane, issuer, profile, peer)
}

/** Of a profile that is there. */
export const signedBy = async (
  plane: Asked,
  issuer: Pick<AddedIssuer, 'name'>,
  profile: string,
  peer?: VaultPeer,
): Promise<void> => {
  await passTest(plane, issuer, profile, peer)
  await changeProfile(plane, profile, { 'certificate.issuer': issuer.name })
}

/** From now on the profile may name it. `peer`: the Vault that it is, whose role the test puts right. */
export const passTest = async (
  plane: Asked,
  { name }: Pick<AddedIssuer, 'name'>,
  profile: string,
  peer?: VaultPeer,
): Promise<void> => {
  const tested = async () =>
    succeeded(await plane.api('POST', `/v1/issuers/${name}/test`, { profiles: [profile] })) as IssuerTest
  let { passed, faults } = await tested()
  const [fault] = faults
  // The role of the page is for another domain.
  if (peer !== undefined && fault !== undefined) {
    await runVaultCommands(peer, fault.fix)
    ;({ passed, faults } = await tested())
  }
  assert.ok(passed, JSON.stringify(faults))
}

export const changeProfile = async (
  plane: Asked,
  profile: string,
  set: Readonly<Record<string, unknown>>,
): Promise<void> => void succeeded(await plane.api('PATCH', `/v1/profiles/${profile}`, { set }))
