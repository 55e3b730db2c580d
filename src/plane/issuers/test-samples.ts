// What `issuer test` has signed: for each profile a leaf like those of its nodes, for a node that does not exist.

import { sortableId } from '#platform/random.ts'
import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import { orderNodeCertificate } from '#domain/identity/node-certificate.ts'
import { sha256Hex } from '#platform/bytes.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { liveProfile } from '#plane/core/live-profile.ts'
import type { FlowCore } from '#plane/core/core.ts'
import { readSpki } from '#pki/spki.ts'
import type { TestSample } from './outside-signer.ts'

export type SampleRequest = {
  readonly profiles: readonly string[]
  /** Null: as long as the profile has it. */
  readonly lifetimeMs: number | null
}

export type Samples = {
  readonly kind: 'samples'
  readonly samples: readonly TestSample[]
  /** Of those that are ordered. */
  readonly longestMs: number
}

export const testSamples = async (
  { store, clock, random }: FlowCore,
  { profiles, lifetimeMs }: SampleRequest,
): Promise<Samples | Refusal> => {
  const domain = (await domainSettingsRow(store)).value
  const node = `issuer-test-${Buffer.from(random.bytes(4)).toString('hex')}`
  const samples: TestSample[] = []
  let longestMs = 0
  for (const name of profiles) {
    const found = await liveProfile(store, name)
    if (isRefusal(found)) return found
    const { certificate } = found.value
    const lasts = lifetimeMs ?? certificate.lifetimeMs
    const profile = { ...found.value, certificate: { ...certificate, lifetimeMs: lasts, minLifetimeMs: null } }
    longestMs = Math.max(longestMs, lasts)
    const orderFor = (spki: Uint8Array) =>
      orderNodeCertificate({
        ...{ id: sortableId(clock.nowMs(), random), node, epoch: 1, profile, domain, nowMs: clock.nowMs() },
        key: { kind: 'key', keyType: readSpki(spki).type, spki, spkiHash: sha256Hex(spki) },
      })
    samples.push({
      profile: name,
      keyTypes: certificate.keyTypes,
      leastLifetimeMs: certificate.minLifetimeMs ?? lasts / 2,
      toleranceMs: domain.clockToleranceMs,
      order: (spki) => {
        const ordered = orderFor(spki)
        if (ordered.kind === 'refused')
          throw new Error(`nothing can be ordered under profile ${name}: ${ordered.detail ?? ''}`)
        return ordered.order
      },
    })
  }
  return samples.length === 0
    ? refuse('REQUEST_INVALID', 'there is no profile to test it with')
    : { kind: 'samples', samples, longestMs }
}
