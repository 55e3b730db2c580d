// What `issuer test` has signed: leaves like those of nodes, of programs and of workers, for a node and a worker that do not exist.

import { sortableId } from '#platform/random.ts'
import type { SigningOrder } from '#domain/core/certificate.ts'
import { isRefusal, refuse, refuseField, type Refusal } from '#domain/core/refusal.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import { orderNodeCertificate, type KeyInRequest } from '#domain/identity/node-certificate.ts'
import { namedByProfile, profilesNaming } from '#domain/issuers/profile-issuer.ts'
import { namedByOutputs, namedByWorkers, outputsNaming, workersNaming } from '#domain/issuers/named-issuer.ts'
import type { OutsideIssuer } from '#domain/issuers/outside-issuer.ts'
import { orderProgramLeaf } from '#domain/programs/issue-program.ts'
import type { Output } from '#domain/programs/output.ts'
import { orderWorkerCertificate, workerKeyTypes } from '#domain/workers/issue-worker.ts'
import { workerLifetimeMs } from '#domain/workers/worker-issuer.ts'
import { sha256Hex } from '#platform/bytes.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { liveProfile } from '#plane/core/live-profile.ts'
import { everyRow, rowPages } from '#plane/core/pages.ts'
import type { FlowCore } from '#plane/core/core.ts'
import { readSpki } from '#pki/spki.ts'
import type { TestSample } from './outside-signer.ts'

/** By name. */
export type SampleRequest = {
  readonly profiles: readonly string[]
  readonly outputs: readonly string[]
  readonly workerIssuers: readonly string[]
}

export type Samples = {
  readonly kind: 'samples'
  readonly samples: readonly TestSample[]
  /** Of those that are ordered. */
  readonly longestMs: number
}

/** Each is signed, judged and revoked there, by each provisioner. */
const mostSamples = 32

/** `lifetimeMs`: null is as long as each of them has it. */
export const testSamples = async (
  core: FlowCore,
  { profiles, outputs, workerIssuers }: SampleRequest,
  lifetimeMs: number | null,
): Promise<Samples | Refusal> => {
  const sampling: Sampling = {
    core,
    domain: (await domainSettingsRow(core.store)).value,
    subject: `issuer-test-${Buffer.from(core.random.bytes(4)).toString('hex')}`,
    lifetimeMs,
  }
  const found: Sampled[] = []
  for (const name of profiles) {
    const sampled = await ofProfile(sampling, name)
    if (isRefusal(sampled)) return sampled
    found.push(sampled)
  }
  const listed = outputs.length === 0 ? [] : await listedOutputs(core)
  for (const name of outputs) {
    const those = listed.filter((output) => output.name === name)
    if (those.length === 0)
      return refuseField('REQUEST_INVALID', 'outputs', `no profile and no vCluster lists an output ${name}`)
    found.push(...distinct(those).map((output) => ofOutput(sampling, output)))
  }
  for (const name of workerIssuers) {
    const row = await core.store.get('worker-issuer', name)
    if (row === null || row.value.removedAtMs !== null) return refuse('WORKER_ISSUER_NOT_FOUND', name)
    found.push(ofWorkers(sampling, name))
  }
  if (found.length === 0) return refuse('REQUEST_INVALID', 'there is nothing to test it with')
  if (found.length > mostSamples)
    return refuse('REQUEST_INVALID', `that is ${found.length} different leaves: name at most ${mostSamples} of them`)
  return {
    kind: 'samples',
    samples: found.map(({ sample }) => sample),
    longestMs: Math.max(...found.map((one) => one.lifetimeMs)),
  }
}

/** All that name it; without any the default profile of the domain. */
export const samplesNaming = async (core: FlowCore, { name }: Pick<OutsideIssuer, 'name'>): Promise<SampleRequest> => {
  const { store } = core
  const workerIssuers = (await Array.fromAsync(rowPages(store, 'worker-issuer', (one) => one.name))).flat()
  const naming: SampleRequest = {
    profiles: profilesNaming(name, await store.profiles()),
    outputs: [...new Set(outputsNaming(name, await listedOutputs(core)))],
    workerIssuers: workersNaming(name, workerIssuers),
  }
  const isNamed = Object.values(naming).some((names) => names.length > 0)
  return isNamed ? naming : { ...naming, profiles: [(await domainSettingsRow(store)).value.defaultProfile] }
}

type Sampling = {
  readonly core: FlowCore
  readonly domain: DomainSettings
  /** Of a node, or the pod of a worker. */
  readonly subject: string
  readonly lifetimeMs: number | null
}

type Sampled = { readonly sample: TestSample; readonly lifetimeMs: number }

const ofProfile = async (sampling: Sampling, name: string): Promise<Sampled | Refusal> => {
  const { core, domain, subject } = sampling
  const found = await liveProfile(core.store, name)
  if (isRefusal(found)) return found
  const { certificate } = found.value
  const lifetimeMs = sampling.lifetimeMs ?? certificate.lifetimeMs
  const profile = { ...found.value, certificate: { ...certificate, lifetimeMs, minLifetimeMs: null } }
  const order = (spki: Uint8Array): SigningOrder => {
    const ordered = orderNodeCertificate({
      ...{ id: newId(core), node: subject, epoch: 1, profile, domain, key: keyOf(spki), nowMs: core.clock.nowMs() },
    })
    if (ordered.kind === 'refused')
      throw new Error(`nothing can be ordered under profile ${name}: ${ordered.detail ?? ''}`)
    return ordered.order
  }
  const { kind, what } = namedByProfile(profile)
  const leastLifetimeMs = certificate.minLifetimeMs ?? lifetimeMs / 2
  return {
    lifetimeMs,
    sample: { kind, what, keyTypes: certificate.keyTypes, leastLifetimeMs, ...toleranceIn(domain), order },
  }
}

/** Documentation addresses and names (RFC 2606, RFC 5737): those of nodes differ. */
const sampleAddress = '192.0.2.1'

const ofOutput = (sampling: Sampling, listed: Output): Sampled => {
  const { core, domain, subject: node } = sampling
  const output = { ...listed, lifetimeMs: sampling.lifetimeMs ?? listed.lifetimeMs }
  const [named] = namedByOutputs([output])
  if (named === undefined) throw new Error('an output was to be tested that is none')
  const names = [
    ...output.dns.map((template) => `dns:${template.replaceAll('{name}', `${node}.example`)}`),
    ...(output.addresses ? [`ip:${sampleAddress}`] : []),
  ]
  const { kind, what, lifetimeMs } = named
  const order = (spki: Uint8Array): SigningOrder =>
    orderProgramLeaf({
      ...{ id: newId(core), node, epoch: 1, domain: domain.name, output, publicKey: spki, names },
      issuedAtMs: core.clock.nowMs(),
    })
  return {
    lifetimeMs,
    sample: { kind, what, keyTypes: [output.keyType], leastLifetimeMs: lifetimeMs / 2, ...toleranceIn(domain), order },
  }
}

const ofWorkers = ({ core, domain, subject, ...sampling }: Sampling, workerIssuer: string): Sampled => {
  const lifetimeMs = sampling.lifetimeMs ?? workerLifetimeMs
  const { kind, what } = namedByWorkers(workerIssuer, '', lifetimeMs)
  const order = (spki: Uint8Array): SigningOrder =>
    orderWorkerCertificate({
      ...{ id: newId(core), workerIssuer, instance: subject, domain: domain.name, publicKey: spki, lifetimeMs },
      issuedAtMs: core.clock.nowMs(),
    })
  return {
    lifetimeMs,
    sample: { kind, what, keyTypes: workerKeyTypes, leastLifetimeMs: lifetimeMs / 2, ...toleranceIn(domain), order },
  }
}

const toleranceIn = ({ clockToleranceMs }: DomainSettings): Pick<TestSample, 'toleranceMs'> => ({
  toleranceMs: clockToleranceMs,
})

const newId = ({ clock, random }: FlowCore): string => sortableId(clock.nowMs(), random)

const keyOf = (spki: Uint8Array): KeyInRequest => ({
  ...{ kind: 'key', keyType: readSpki(spki).type, spki, spkiHash: sha256Hex(spki) },
})

/** Of all profiles and vClusters. */
const listedOutputs = async ({ store }: Pick<FlowCore, 'store'>): Promise<readonly Output[]> => {
  const found = (await store.profiles()).flatMap(({ value }) => value.outputs)
  for await (const { outputs } of everyRow(store, 'vcluster', ({ name }) => name)) found.push(...outputs)
  return found
}

/** Of one name, those that an issuer would sign in another way. */
const distinct = (outputs: readonly Output[]): readonly Output[] => [
  ...new Map(
    outputs.map((one) => [JSON.stringify([one.usage, one.keyType, one.dns, one.addresses, one.lifetimeMs]), one]),
  ).values(),
]
