// Which setting of a step-ca is wrong, from what it lists, refuses and signs, and the line that makes it right. The lines are those of
// docs/issuers/STEP-CA.md.

import { allFromPem, toPem } from '#pki/pem.ts'
import type { PublicJwk } from '#pki/private-jwk.ts'
import type { ViolatedField, Violation } from '#pki/returned-certificate.ts'
import { sameBytes } from '#platform/bytes.ts'
import type { SettingFault } from './outside-signer.ts'
import { partOf, textOf } from './step-ca-answer.ts'

export type WantedSettings = {
  readonly enrollment: { readonly name: string; readonly keyId: string; readonly publicJwk: PublicJwk }
  /** `root`: DER, the only one that may be in `roots`. */
  readonly renewal: { readonly name: string; readonly root: Uint8Array }
  /** Of the address that it is called by. */
  readonly host: string
  readonly longestMs: number
  readonly shortestMs: number
}

const settingOf = (name: string, setting: string): string => `authority.provisioners[${name}].${setting}`

const templateFile = '"options": { "x509": { "templateFile": "/etc/step-ca/muster.tpl" } }'
const disableRenewal = '"disableRenewal": true'

/** Of the template, by what it decides. */
export const templateLines: Readonly<Partial<Record<ViolatedField, string>>> = {
  serial: '"serialNumber": {{ toJson $order.serial }},',
  subject:
    '"subject": { "commonName": {{ toJson $order.subject.cn }}, "organization": {{ toJson $order.subject.o }}, "organizationalUnit": {{ toJson $order.subject.ou }} },',
  subjectAltName:
    '"uris": {{ toJson $order.uris }}, "dnsNames": {{ toJson $order.dnsNames }}, "ipAddresses": {{ toJson $order.ips }},',
  keyUsage: '"keyUsage": ["digitalSignature"],',
  extendedKeyUsage: '"extKeyUsage": {{ toJson $order.usage }}',
}

/** `listed`: what `/1.0/provisioners` has. A provisioner with a fault here would refuse everything, and not say why. */
export const faultsOfListing = (
  listed: readonly unknown[],
  wanted: WantedSettings,
): { readonly enrollment: readonly SettingFault[]; readonly renewal: readonly SettingFault[] } => {
  const find = (type: string, name: string): unknown =>
    listed.find((one) => textOf(one, 'type') === type && textOf(one, 'name') === name) ?? null
  const enrollment = find('JWK', wanted.enrollment.name)
  const renewal = find('X5C', wanted.renewal.name)
  return {
    enrollment: enrollment === null ? [missing('JWK', wanted)] : keyFaults(enrollment, wanted),
    renewal: renewal === null ? [missing('X5C', wanted)] : rootFaults(renewal, wanted),
  }
}

const missing = (type: 'JWK' | 'X5C', { enrollment, renewal, longestMs }: WantedSettings): SettingFault => {
  const { name } = type === 'JWK' ? enrollment : renewal
  const line = type === 'JWK' ? keyLine(enrollment) : rootsLine(renewal)
  const claims = `"claims": { "maxTLSCertDuration": "${goDuration(longestMs + tenMinutesMs)}", ${disableRenewal} }`
  const fix = `{ "type": "${type}", "name": "${name}", ${line}, ${claims}, ${templateFile} }`
  return { setting: 'authority.provisioners', why: `there is no ${type} provisioner named ${name}`, fix }
}

const keyLine = ({ keyId, publicJwk }: WantedSettings['enrollment']): string => {
  const members = Object.entries({ ...publicJwk, kid: keyId, use: 'sig' })
  return `"key": { ${members.map(([name, value]) => `"${name}": ${JSON.stringify(value)}`).join(', ')} }`
}

const rootsLine = ({ root }: WantedSettings['renewal']): string =>
  `"roots": "${Buffer.from(toPem('CERTIFICATE', root)).toString('base64')}"`

const keyFaults = (listed: unknown, { enrollment }: WantedSettings): readonly SettingFault[] => {
  const key = partOf(listed, 'key')
  const fault = (why: string): SettingFault => ({
    setting: settingOf(enrollment.name, 'key'),
    why,
    fix: keyLine(enrollment),
  })
  if (textOf(key, 'kid') !== enrollment.keyId)
    return [fault(`its key has the id ${textOf(key, 'kid').slice(0, 128)}, and the one here has ${enrollment.keyId}`)]
  const isSame = (['crv', 'x', 'y'] as const).every((name) => textOf(key, name) === (enrollment.publicJwk[name] ?? ''))
  return isSame ? [] : [fault('its key is not the public half of the one here')]
}

const rootFaults = (listed: unknown, { renewal }: WantedSettings): readonly SettingFault[] => {
  const pem = Buffer.from(textOf(listed, 'roots'), 'base64').toString('utf8')
  const roots = allFromPem('CERTIFICATE', pem) ?? []
  const fault = (why: string): SettingFault => ({
    setting: settingOf(renewal.name, 'roots'),
    why,
    fix: rootsLine(renewal),
  })
  if (!roots.some((one) => sameBytes(one, renewal.root)))
    return [fault('it lacks the root of the credential for renewals')]
  // Whoever has a certificate for clients under any of them gets certificates for every name.
  return roots.length === 1 ? [] : [fault('it has more roots than that of the credential for renewals')]
}

/** `why`: its sentence. Of a provisioner that is listed as it has to be. */
export const faultOfRefusal = (name: string, why: string, wanted: WantedSettings): SettingFault => {
  const claim = (setting: string, ms: number): SettingFault => ({
    setting: settingOf(name, `claims.${setting}`),
    why,
    fix: `"${setting}": "${goDuration(ms)}"`,
  })
  if (why.includes('authorized maximum certificate duration'))
    return claim('maxTLSCertDuration', wanted.longestMs + tenMinutesMs)
  if (why.includes('authorized minimum certificate duration')) return claim('minTLSCertDuration', wanted.shortestMs)
  if (why.includes('template')) return { setting: settingOf(name, 'options.x509'), why, fix: templateFile }
  if (why.endsWith('(401)'))
    return {
      setting: 'dnsNames',
      why: `provisioner ${name} refuses a token for ${wanted.host}, which is good for a minute: the name is not its own, or the clocks differ`,
      fix: `"dnsNames": ["${wanted.host}"]`,
    }
  return { setting: settingOf(name, 'options.x509'), why, fix: templateFile }
}

const tenMinutesMs = 600_000

const goDuration = (ms: number): string => {
  const minutes = Math.ceil(ms / 60_000)
  return minutes < 60 ? `${minutes}m` : `${Math.floor(minutes / 60)}h${minutes % 60}m`
}

/** A leaf that is not as it was ordered. */
export const faultsOfLeaf = (name: string, violations: readonly Violation[]): readonly SettingFault[] => {
  const fields = new Set(violations.map(({ field }) => field))
  const whyAll = violations.map(({ field, why }) => `${field}: ${why}`).join('; ')
  // The template that step-ca has of its own differs in all of these.
  if (fields.has('serial') && fields.has('subjectAltName'))
    return [
      { setting: settingOf(name, 'options.x509'), why: `it signs without the template: ${whyAll}`, fix: templateFile },
    ]
  return violations.map(({ field, why }) => faultOfField(name, field, `${field}: ${why}`, fields.size === 1))
}

const faultOfField = (name: string, field: ViolatedField, why: string, isAlone: boolean): SettingFault => {
  switch (field) {
    case 'subject':
      // What the order leaves out is filled in from there; a template without the line leaves the name out.
      if (isAlone && why.includes('CN=')) return { setting: 'authority.template', why, fix: `"template": {}` }
      return ofTemplate(name, field, why)
    case 'serial':
    case 'subjectAltName':
    case 'keyUsage':
    case 'extendedKeyUsage':
    case 'basicConstraints':
    case 'extensions':
    case 'publicKey':
    case 'encoding':
      return ofTemplate(name, field, why)
    case 'notBefore':
      return { setting: 'authority.backdate', why, fix: '"backdate": "1m0s"' }
    case 'notAfter':
      return { setting: settingOf(name, 'options.x509'), why: `${why}: the template sets it`, fix: templateFile }
    case 'chain':
      return {
        setting: 'root, crt',
        why,
        fix: 'step certificate create "Intermediate" issuing.crt issuing.key --profile intermediate-ca --ca root.crt --ca-key root.key --kty EC --crv P-256',
      }
  }
}

const ofTemplate = (name: string, field: ViolatedField, why: string): SettingFault => ({
  setting: settingOf(name, 'options.x509'),
  why,
  fix: templateLines[field] ?? templateFile,
})

export const renewsByItself = (name: string, listed: readonly unknown[]): SettingFault => {
  const claims = partOf(listed.find((one) => textOf(one, 'name') === name) ?? null, 'claims')
  // Without a database step-ca knows by this extension alone whose settings hold for a certificate.
  const isTold = partOf(claims, 'disableRenewal') === true
  return {
    setting: settingOf(name, `claims.${isTold ? 'disableSmallstepExtensions' : 'disableRenewal'}`),
    why: 'it renews the certificate of a node for the node alone, past this plane',
    fix: isTold ? '"disableSmallstepExtensions": false' : disableRenewal,
  }
}

export const takesLeaves = ({ renewal }: WantedSettings): SettingFault => ({
  setting: settingOf(renewal.name, 'roots'),
  why: 'it takes the certificate of a node for a credential: each node could get certificates for every name',
  fix: rootsLine(renewal),
})

export const noDatabase: SettingFault = {
  setting: 'db',
  why: 'it has no database: it can revoke nothing, and forgets at a restart which tokens were used',
  fix: '"db": { "type": "badgerv2", "dataSource": "/var/lib/step-ca/db" }',
}

export const unreadableRoot = (why: string): SettingFault => ({
  setting: 'root',
  why: `neither the plane nor agents can use its root: ${why}`,
  fix: 'step certificate create "Root" root.crt root.key --profile root-ca --kty EC --crv P-256',
})

export const untrustedServer = (why: string, host: string): SettingFault =>
  why.includes('for another name')
    ? { setting: 'dnsNames', why, fix: `"dnsNames": ["${host}"]` }
    : { setting: 'root', why, fix: 'step ca roots roots.pem' }
