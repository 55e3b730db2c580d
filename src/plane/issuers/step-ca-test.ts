// `issuer test` for a step-ca: it signs throw-away leaves by both provisioners, tries what nobody may be able to do there with one of them, and
// revokes them all.

import { serialOf, serialBytes } from '#domain/issuers/serial.ts'
import { makeCsr } from '#pki/csr.ts'
import { generateKey, type PrivateKey } from '#pki/keys.ts'
import { parseCertificate } from '#pki/parse-certificate.ts'
import { fromPem, toPem } from '#pki/pem.ts'
import { publicJwk } from '#pki/private-jwk.ts'
import { judgeReturned } from '#pki/returned-certificate.ts'
import type { Timers } from '#platform/timers.ts'
import { IssuerFault, type IssuerServer, openIssuerClient } from '#plane/outside/issuer-client.ts'
import type { OutsideSigner, SettingFault, TestSample } from './outside-signer.ts'
import { chainOf, listOf, textOf } from './step-ca-answer.ts'
import { NoDatabase, signThere, type StepCa } from './step-ca-calls.ts'
import {
  faultOfRefusal,
  faultsOfLeaf,
  faultsOfListing,
  noDatabase,
  renewsByItself,
  takesLeaves,
  unreadableRoot,
  untrustedServer,
  type WantedSettings,
} from './step-ca-settings.ts'
import type { Provisioner } from './step-ca-token.ts'

export type Tested = {
  readonly ca: StepCa
  readonly timers: Timers
  readonly server: IssuerServer
  /** DER. */
  readonly roots: readonly Uint8Array[]
  readonly enrollment: { readonly name: string; readonly keyId: string }
  readonly renewal: { readonly name: string; readonly root: Uint8Array }
  readonly revoke: OutsideSigner['revoke']
  aheadMs(): number | null
}

type Leaf = { readonly key: PrivateKey; readonly chain: readonly Uint8Array[] }
type Trial = { readonly sample: TestSample; readonly by: Provisioner }

export const testStepCa = async (
  tested: Tested,
  samples: readonly TestSample[],
  signal: AbortSignal,
): Promise<readonly SettingFault[]> => {
  const unreadable = tested.roots.map((der) => parseCertificate(der)).find(({ kind }) => kind === 'malformed')
  if (unreadable?.kind === 'malformed') return [unreadableRoot(unreadable.why)]
  const wanted = settingsFor(tested, samples)
  let listed: readonly unknown[] | null
  try {
    listed = await provisionersOf(tested.ca, signal)
  } catch (error) {
    if (error instanceof IssuerFault && error.code === 'untrusted') return [untrustedServer(error.message, wanted.host)]
    throw error
  }
  // A proxy may let only what is needed through: what it signs still shows.
  const found = listed === null ? { enrollment: [], renewal: [] } : faultsOfListing(listed, wanted)
  const listedFaults = [...found.enrollment, ...found.renewal]
  // Without that provisioner nothing could be revoked.
  if (found.enrollment.length > 0) return listedFaults
  const trial = openTrial(tested, wanted, listed ?? [], signal)
  try {
    for (const sample of samples) {
      await trial.run({ sample, by: tested.ca.enrollment })
      if (found.renewal.length === 0) await trial.run({ sample, by: tested.ca.renewal() })
    }
  } finally {
    await trial.revokeAll()
  }
  return [...listedFaults, ...trial.faults]
}

const settingsFor = ({ ca, server, enrollment, renewal }: Tested, samples: readonly TestSample[]): WantedSettings => {
  const spki = generateKey('p256').spki
  const lifetimes = samples.map(({ order }) => order(spki).lifetimeMs)
  return {
    enrollment: { ...enrollment, publicJwk: publicJwk(ca.enrollment.key.spki) },
    renewal,
    host: new URL(server.address).hostname,
    longestMs: Math.max(...lifetimes),
    shortestMs: Math.min(...lifetimes),
  }
}

const mostPages = 20
/** More than passes between two signatures of a test. */
const shorterByMs = 5 * 60_000

/** Null: it does not list them. */
const provisionersOf = async ({ client }: StepCa, signal: AbortSignal): Promise<readonly unknown[] | null> => {
  const all: unknown[] = []
  let cursor = ''
  for (let page = 0; page < mostPages; page++) {
    const path = `/1.0/provisioners?limit=100&cursor=${encodeURIComponent(cursor)}`
    const answer = await client.ask({ method: 'GET', path }, signal).catch((error: unknown) => {
      if (error instanceof IssuerFault && error.code === 'not-json') return null
      throw error
    })
    if (answer?.status !== 200) return null
    const { json } = answer
    all.push(...listOf(json, 'provisioners'))
    cursor = textOf(json, 'nextCursor')
    if (cursor === '') break
  }
  return all
}

const openTrial = (tested: Tested, wanted: WantedSettings, listed: readonly unknown[], signal: AbortSignal) => {
  const { ca, timers, server, roots, revoke } = tested
  const faults: SettingFault[] = []
  const serials: string[] = []
  /** Each once: samples and provisioners have many in common. */
  const note = (more: readonly SettingFault[]): void => {
    for (const fault of more)
      if (!faults.some(({ setting, fix }) => setting === fault.setting && fix === fault.fix)) faults.push(fault)
  }

  /** What it signs is revoked in the end, whatever it is. */
  const sign = async ({ sample, by }: Trial, key: PrivateKey, shorterByMs = 0) => {
    const ordered = sample.order(key.spki)
    const order = { ...ordered, lifetimeMs: ordered.lifetimeMs - shorterByMs }
    const serial = serialOf(ca.minting.random.bytes(serialBytes))
    const request = fromPem('CERTIFICATE REQUEST', makeCsr(key, 'issuer-test'))
    if (request === null) throw new Error('a request of our own making is malformed')
    const signed = await signThere(ca, { order, serial, request }, by, signal)
    if (signed.kind === 'returned') serials.push(...serialsOf(signed.chain, serial))
    return { order, serial, signed }
  }

  const run = async (trial: Trial): Promise<void> => {
    const key = generateKey(trial.sample.keyTypes[0] ?? 'p256')
    const { name } = trial.by
    let outcome
    try {
      outcome = await sign(trial, key)
    } catch (error) {
      // A template that makes no certificate is an error of the server itself.
      if (!(error instanceof IssuerFault) || error.code !== 'failed') throw error
      return note([faultOfRefusal(name, error.message, wanted)])
    }
    const { order, serial, signed } = outcome
    if (signed.kind === 'unsent') throw new IssuerFault(signed.why, 'unreachable', true)
    if (signed.kind === 'unsigned') return note([faultOfRefusal(name, signed.why, wanted)])
    const verdict = judgeReturned({
      order,
      chain: signed.chain,
      roots,
      withdrawn: [],
      serial,
      isOnRecord: false,
      answeredAtMs: ca.minting.clock.nowMs(),
      clock: { aheadMs: tested.aheadMs(), toleranceMs: trial.sample.toleranceMs },
      leastLifetimeMs: trial.sample.leastLifetimeMs,
    })
    if (verdict.kind === 'violates') note(faultsOfLeaf(name, verdict.violations))
    const leaf = { key, chain: signed.chain }
    // Its server takes no certificate from a client that is not for clients.
    if (order.usage === 'server') return
    await tryRenewal(name, leaf)
    await tryAsCredential(trial.sample, leaf)
  }

  /** As a node could: step-ca renews for each holder of a certificate, unless it is told not to. */
  const tryRenewal = async (name: string, { key, chain }: Leaf): Promise<void> => {
    const cert = chain.map((der) => toPem('CERTIFICATE', der)).join('')
    const client = openIssuerClient(timers, { ...server, identity: { key: key.pkcs8Pem(), cert } })
    try {
      const { status, json } = await client.ask({ method: 'POST', path: '/1.0/renew', json: {} }, signal)
      if (status !== 201 && status !== 200) return
      serials.push(...serialsOf(chainOf(json) ?? [], null))
      note([renewsByItself(name, listed)])
    } finally {
      client.close()
    }
  }

  /** As a node could, where `roots` has more than the root of the credential. */
  const tryAsCredential = async (sample: TestSample, { key, chain }: Leaf): Promise<void> => {
    const by: Provisioner = { name: wanted.renewal.name, key, known: { by: 'chain', chain } }
    // Step-ca signs nothing that outlives its credential, and would refuse for that reason alone.
    const { signed } = await sign({ sample, by }, generateKey('p256'), shorterByMs)
    if (signed.kind === 'returned') note([takesLeaves(wanted)])
  }

  const revokeAll = async (): Promise<void> => {
    for (const serial of serials) {
      try {
        await revoke(serial, 'superseded', signal)
      } catch (error) {
        if (error instanceof NoDatabase) return note([noDatabase])
        if (!(error instanceof IssuerFault) || error.code !== 'failed') throw error
        return note([faultOfRefusal(wanted.enrollment.name, `no revocation: ${error.message}`, wanted)])
      }
    }
  }

  return { run, revokeAll, faults }
}

/** The one that was ordered, and the one that it has. */
const serialsOf = ([leaf]: readonly Uint8Array[], ordered: string | null): readonly string[] => {
  const certificate = leaf === undefined ? null : parseCertificate(leaf)
  const signed = certificate?.kind === 'certificate' ? certificate.serial : null
  return [...new Set([ordered, signed].filter((serial) => serial !== null))]
}
