// Whether what was read from the disk can be used: every private key parses, and fits the certificate or the request beside
// it. A damaged key would otherwise fail deep inside TLS, where it looks like a network that does not answer.

import { sameBytes } from '#platform/bytes.ts'
import type { Clock } from '#platform/clock.ts'
import { parseCsr } from '#pki/csr.ts'
import { loadPrivateKey } from '#pki/keys.ts'
import { parseCertificate } from '#pki/parse-certificate.ts'
import { allFromPem } from '#pki/pem.ts'
import { observedTrouble, type Trouble } from '#agent/core/trouble.ts'
import type { Credentials, Generation, Identity, KeyRequest } from './credentials.ts'

/** Said by this machine of its own files; never by the plane. */
export const damagedCode = 'credentials_damaged'

/** What is wrong with a generation, in words that repeat nothing of the key; null: it can be used. */
const faultOfGeneration = ({ keyPem, chainPem }: Generation): string | null => {
  const chain = allFromPem('CERTIFICATE', chainPem)
  const [leafDer] = chain ?? []
  if (chain === null || leafDer === undefined) return 'its certificate chain cannot be read'
  const leaf = parseCertificate(leafDer)
  if (leaf.kind === 'malformed' || chain.some((der) => parseCertificate(der).kind === 'malformed')) {
    return 'its certificate chain is malformed'
  }
  const spki = publicKeyOf(keyPem)
  if (spki === null) return 'its private key cannot be read'
  return sameBytes(leaf.spki, spki) ? null : 'its private key does not fit its certificate'
}

const faultOfKey = (keyPem: string): string | null => (publicKeyOf(keyPem) === null ? 'the key cannot be read' : null)

const publicKeyOf = (keyPem: string): Uint8Array | null => {
  try {
    return loadPrivateKey(keyPem).spki
  } catch {
    return null
  }
}

const isSoundRequest = ({ keyPem, csrPem, recoveryKey }: KeyRequest): boolean => {
  const csr = parseCsr(csrPem)
  const spki = publicKeyOf(keyPem)
  if (csr.kind === 'malformed' || spki === null || !sameBytes(csr.spki, spki)) return false
  return recoveryKey === null || faultOfKey(recoveryKey.keyPem) === null
}

export type Sound = {
  readonly credentials: Credentials
  /** What was left out because it is damaged and something whole takes its place. */
  readonly dropped: readonly string[]
}

/**
 * Leaves out what is damaged where something whole takes its place: the generation before a certificate that was never
 * used, and a new request for one that cannot be repeated. A current generation that is damaged stays: it names the node.
 */
export const soundCredentials = ({ identity, request }: Credentials): Sound => {
  const dropped: string[] = []
  const sound = request === null || isSoundRequest(request) ? request : null
  if (sound === null && request !== null) dropped.push(`the request under way (${request.purpose.kind})`)
  return {
    credentials: { identity: identity === null ? null : soundIdentity(identity, dropped), request: sound },
    dropped,
  }
}

const soundIdentity = (identity: Identity, dropped: string[]): Identity => {
  const { current, previous } = identity
  if (previous === null) return identity
  if (faultOfGeneration(previous) !== null) {
    dropped.push(`the certificate before the current one (${previous.serial})`)
    return { ...identity, previous: null }
  }
  const fault = current.proven ? null : faultOfGeneration(current)
  if (fault === null) return identity
  dropped.push(`the new certificate ${current.serial}, which was not used yet: ${fault}`)
  return { ...identity, current: previous, previous: null }
}

/** Why the identity cannot be used as it is; null: it can. */
export const damageOf = (identity: Identity): Trouble | null => {
  const fault = faultOfGeneration(identity.current)
  if (fault === null) return null
  const lost = recoveryKeyDamage(identity) === null ? '' : ' Its recovery key is damaged as well.'
  return observedTrouble(
    damagedCode,
    `The credentials of ${identity.nodeId} on this machine are damaged: ${fault}.${lost}`,
    {
      kind: 'damaged-credentials',
      part: 'current',
      fault,
      serial: identity.current.serial,
    },
  )
}

/**
 * The newest key of the identity that can be read, and the counter that goes with it, to prove it to a plane that understands that
 * (ruling 23). Null: there is nothing to prove.
 */
export const provableKey = (identity: Identity): { readonly keyPem: string; readonly counter: string } | null => {
  const { source, understands, counter, current, previous } = identity
  if (source !== 'plane' || counter === null || !understands.includes('identity_proof')) return null
  const usable = [current, previous].find(
    (generation) => generation !== null && publicKeyOf(generation.keyPem) !== null,
  )
  return usable === undefined || usable === null ? null : { keyPem: usable.keyPem, counter }
}

/** Null: the recovery key can be used, or there is none. */
export const recoveryKeyDamage = ({ nodeId, recovery }: Identity): Trouble | null => {
  if (recovery === null || recovery.credential.kind !== 'key') return null
  const fault = faultOfKey(recovery.credential.keyPem)
  if (fault === null) return null
  return observedTrouble(damagedCode, `The recovery key of ${nodeId} on this machine is damaged: ${fault}.`, {
    kind: 'damaged-credentials',
    part: 'recovery',
    fault,
    serial: null,
  })
}

/** Said by this machine, by its own clock; never by the plane. */
export const expiredCode = 'cert_expired'

/** By the clock the agent believes. */
export const isExpired = ({ clock }: { readonly clock: Pick<Clock, 'nowMs'> }, { current }: Identity): boolean =>
  clock.nowMs() >= current.notAfterMs

export const expired = ({ clock }: { readonly clock: Pick<Clock, 'nowMs'> }, { current }: Identity): Trouble =>
  observedTrouble(expiredCode, `The certificate ${current.serial} of this node has expired.`, {
    kind: 'own-certificate',
    serial: current.serial,
    notAfterMs: current.notAfterMs,
    nowMs: clock.nowMs(),
  })
