// Recovery on a real store, real keys and a clock the test moves; calls go straight to the flows.

import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { JournalEntry } from '#domain/core/journal-entry.ts'
import type { Node } from '#domain/core/node.ts'
import type { Profile } from '#domain/core/profile.ts'
import { shippedProfiles } from '#domain/core/shipped-profiles.ts'
import { makeCsr } from '#pki/csr.ts'
import { generateKey, type PrivateKey } from '#pki/keys.ts'
import { verifyAs } from '#pki/signature.ts'
import { openFeed } from '#plane/core/feed.ts'
import { openAdmissionQueue } from '#plane/limits/admission-queue.ts'
import { createToken } from '#plane/enrollment/token-routes.ts'
import { enrollNode, type EnrollCall } from '#plane/enrollment/enroll-node.ts'
import { issueChallenge } from '#plane/identity/request-proofs.ts'
import { openSightingJudge } from '#plane/continuity/judge-sighting.ts'
import { counterAndToken, type Issued, type Signers } from '#plane/identity/issue.ts'
import type { LiveHolder } from '#plane/identity/holders.ts'
import { openCopiedImages } from '#plane/identity/copied-images.ts'
import { openSecondHolders } from '#plane/identity/second-holder.ts'
import { openWriteLimit } from '#plane/limits/write-limit.ts'
import { recoverNode, type RecoverCall } from '#plane/recovery/recover-node.ts'
import { rehearseRecovery, type RehearseCall } from '#plane/recovery/rehearse-recovery.ts'
import { renewCertificate, type RenewCall } from '#plane/identity/renew-certificate.ts'
import { openCallerBudget } from '#plane/limits/caller-budget.ts'
import { useCertificate } from '#plane/core/use-certificate.ts'
import { sha256Hex } from '#platform/bytes.ts'
import { systemTimers, type Timers } from '#platform/timers.ts'
import type { Authority } from '#plane/authority/authority.ts'
import type { Core } from '#plane/core/core.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { silentLog } from '#platform/log.ts'
import { systemRandom } from '#platform/random.ts'
import type { AgentEvidence } from '#wire/core/agent-evidence.ts'
import type { IdentityProof, RecoveryRegistration } from '#wire/identity/identity-api.ts'
import { recoveryProofBytes } from '#wire/core/statement.ts'
import { noOrders } from '../fakes/no-orders.ts'
import { settingsNow } from '../fakes/settings-now.ts'
import { operator, setUp, type Setup } from './authority-setup.ts'

export const source = '192.0.2.9'
const nonce = 'n'.repeat(22)

export const evidenceOf = (instance: string): AgentEvidence => ({
  instance: instance.padEnd(22, '0'),
  hardware: { macs: ['02:00:00:00:00:01'], bmc_serial: null },
  machine: null,
  agent_version: '1.0.0',
})

export const newCsr = (): string => makeCsr(generateKey('p256'), 'any')

/** `profile`: what differs from gpu-cloud. */
export const setUpRecovery = async (t: TestContext, profile: Partial<Profile> = {}) => {
  const setup = await setUp(t)
  await changeProfile(setup.store, profile)
  return openRecoverySetup(setup)
}

export const changeProfile = async (store: Store, profile: Partial<Profile>): Promise<void> => {
  const [standard] = shippedProfiles
  assert(standard !== undefined)
  const row = await store.get('profile', standard.name)
  assert(row !== null)
  const changed: Profile = { ...standard, ...profile }
  await store.commit({
    reads: [{ row: 'profile', key: standard.name, version: row.version }],
    writes: [{ put: 'profile', value: changed }],
    entries: [
      { type: 'profile.changed', atMs: 0, actor: 'operator:test', source: null, correlation: null, body: {}, ...none },
    ],
  })
}

/** As at a start of a plane. `wrapped`: who signs besides the authority of the domain; nobody unless given. */
export const openRecoverySetup = async (
  { store, clock, open, openRecovery, journal, folder }: Setup,
  wrapped: (core: Core, authority: Authority) => Promise<{ issuer: Authority; orders: Signers['orders'] }> = async (
    _core,
    issuer,
  ) => ({ issuer, orders: noOrders }),
  timers: Timers = systemTimers,
) => {
  const live = {
    holder: null as LiveHolder | null,
    channelOf: null as string | null,
    /** The process that had the current certificate on a channel last. */
    lastHolder: null as string | null,
    /** Who comes back while it is waited for. */
    returning: null as LiveHolder | null,
  }
  const feed = openFeed()
  const recovery = await openRecovery()
  const settings = await settingsNow(store, feed)
  const core = { store, feed, clock, random: systemRandom, log: silentLog, timers }
  const { issuer, orders } = await wrapped(core, await open())
  const deps = {
    store,
    feed,
    clock,
    random: systemRandom,
    issuer,
    orders,
    verifyProof: verifyAs,
    recovery,
    sightingJudge: await openSightingJudge(
      { store, feed, clock, random: systemRandom, log: silentLog },
      { recovery, settings },
    ),
    domainName: 'test.example',
    onRehearsal: () => {},
    anonymousBudget: openCallerBudget(clock, () => ({ perMinute: 3, perMinutePerSource: 3 })),
    admission: openAdmissionQueue(clock, 200),
    writeLimit: openWriteLimit(clock, () => 1),
    probe: async () => ({ silentMs: 60_000 }),
    copiedImages: openCopiedImages({ store, feed, clock, random: systemRandom }),
    secondHolders: openSecondHolders(
      { store, feed, clock },
      {
        other: async () => live.holder,
        async awaitReturn() {
          const { returning } = live
          live.returning = null
          if (returning !== null) live.holder = returning
          return returning === null ? 'nothing' : 'waited'
        },
        isConnected: async (_node, instance) => instance === live.channelOf,
        isCurrent: async (_node, instance) => instance === live.lastHolder,
      },
    ),
    urls: () => ({ node: 'https://localhost:1', marked: true }),
  }

  const challenge = (node: string | null): string => issueChallenge(deps, deps, { nonce, node })
  const registrationOf = (key: PrivateKey, csr: string, node: string | null = null): RecoveryRegistration => {
    const asked = challenge(node)
    const signed = { purpose: 'register', node: node ?? '-', challenge: asked, csrHash: sha256Hex(csr) } as const
    const proof = Buffer.from(key.sign(recoveryProofBytes({ ...signed, counter: '-' }))).toString('base64url')
    return { kind: 'key', public_key: Buffer.from(key.spki).toString('base64'), challenge: asked, proof }
  }

  const invite = async (id: string, replace = false): Promise<string> => {
    const made = await createToken(deps, deps, { node: id, profile: null, replace, ttlMs: null }, operator)
    assert(made.kind === 'made')
    return made.secret
  }
  const enroll = (secret: string, csr: string, recovery: RecoveryRegistration | null, more: Partial<EnrollCall> = {}) =>
    enrollNode(deps, deps, {
      method: 'token',
      secret,
      askedId: null,
      hardware: { macs: [], bmcSerial: null },
      facts: null,
      evidence: null,
      csr,
      recovery,
      identityProof: null,
      wireguard: null,
      source,
      correlation: 'call-1',
      ...more,
    })
  /** The key of a certificate, proven for a request. */
  const identityProofOf = (
    key: PrivateKey,
    about: { readonly node: string; readonly csr: string; readonly counter: string },
    asked: string = challenge(about.node),
  ): IdentityProof => {
    const signed = { purpose: 'prove', node: about.node, challenge: asked, csrHash: sha256Hex(about.csr) } as const
    const bytes = recoveryProofBytes({ ...signed, counter: about.counter })
    const proof = Buffer.from(key.sign(bytes)).toString('base64url')
    return { public_key: Buffer.from(key.spki).toString('base64'), challenge: asked, counter: about.counter, proof }
  }

  const nodeNow = async (id: string): Promise<Node> => {
    const found = await store.get('node', id)
    assert(found !== null)
    return found.value
  }
  /** As the holder of the newest certificate. */
  const principal = async (id: string) => {
    const node = await nodeNow(id)
    assert('slots' in node.membership && node.membership.slots !== null)
    const { current, pending } = node.membership.slots
    const slot = pending ?? current
    const credential = { by: 'certificate', issuer: slot.issuer, serial: slot.serial, spki: slot.spki } as const
    const { epoch } = node
    return { kind: 'node', id, epoch, credential, notAfterMs: slot.notAfterMs, evidenceOnly: false, source } as const
  }
  const firstUse = async (id: string): Promise<void> => {
    const used = await useCertificate(deps, await principal(id), 'first-use')
    assert.equal(used.kind, 'in-use', JSON.stringify(used))
  }
  const counterOf = (outcome: Issued): string => counterAndToken(deps, outcome.node, outcome.certificate).counter
  const tokenOf = (outcome: Issued): string | null =>
    counterAndToken(deps, outcome.node, outcome.certificate).recoveryToken

  /** An active node that has registered this key, or a bearer token. */
  const recoverable = async (id: string, by: PrivateKey | 'bearer') => {
    const csr = newCsr()
    const registration = by === 'bearer' ? { kind: 'bearer' as const } : registrationOf(by, csr)
    const outcome = await enroll(await invite(id), csr, registration)
    assert(outcome.kind === 'issued', JSON.stringify(outcome))
    await firstUse(id)
    return { outcome, csr, counter: counterOf(outcome), token: tokenOf(outcome) }
  }

  const keyCredential = (
    key: PrivateKey,
    about: { readonly node: string; readonly csr: string | null; readonly counter: string | null },
    asked: string = challenge(about.node),
  ): RecoverCall['credential'] => {
    const csrHash = about.csr === null ? '-' : sha256Hex(about.csr)
    const purpose = about.csr === null ? 'rehearse' : 'recover'
    const counter = about.counter ?? '-'
    const signed = recoveryProofBytes({ purpose, node: about.node, challenge: asked, csrHash, counter })
    return { kind: 'key', challenge: asked, proof: Buffer.from(key.sign(signed)).toString('base64url') }
  }

  const recoverCall = (
    call: Pick<RecoverCall, 'node' | 'counter' | 'csr' | 'credential'> & Partial<RecoverCall>,
  ): RecoverCall => ({
    failure: {
      class: 'cert_expired',
      code: 'CLIENT_CERT_EXPIRED',
      sinceMs: clock.nowMs() - 1000,
      certNotAfterMs: null,
    },
    evidence: evidenceOf('a'),
    register: null,
    sighting: null,
    issuerRoots: null,
    source,
    correlation: 'story-0001',
    ...call,
  })
  const recover = (call: Pick<RecoverCall, 'node' | 'counter' | 'csr' | 'credential'> & Partial<RecoverCall>) =>
    recoverNode(deps, deps, recoverCall(call))
  const recoverByKey = (
    key: PrivateKey,
    node: string,
    counter: string | null,
    csr = newCsr(),
    more: Partial<RecoverCall> = {},
  ) => recover({ node, counter, csr, credential: keyCredential(key, { node, csr, counter }), ...more })

  const rehearse = (call: Pick<RehearseCall, 'node' | 'credential' | 'counter'> & Partial<RehearseCall>) =>
    rehearseRecovery(deps, deps, {
      ...{ evidence: evidenceOf('a'), diskReserve: true, clockSkewMs: 0, source, correlation: 'rehearsal' },
      ...call,
    })
  const renew = async (id: string, call: Partial<RenewCall> = {}) => {
    const node = await principal(id)
    return renewCertificate(deps, deps, node, {
      csr: newCsr(),
      counter: null,
      recovery: null,
      issuerRoots: null,
      evidence: null,
      correlation: 'renewal',
      ...call,
    })
  }

  const entriesOf = async (correlation: string): Promise<readonly JournalEntry[]> => {
    const found = await store.journal.read({ after: null, last: null, limit: 1000, node: null, type: null })
    return found.map(({ entry }) => entry).filter((entry) => entry.correlation === correlation)
  }
  return {
    ...{
      deps,
      store,
      clock,
      folder,
      live,
      journal,
      challenge,
      registrationOf,
      identityProofOf,
      invite,
      enroll,
      nodeNow,
    },
    ...{ principal, firstUse, counterOf, tokenOf, recoverable, keyCredential, recover, recoverByKey, rehearse, renew },
    entriesOf,
  }
}

const none = { node: null, epoch: null, token: null, issuer: null, serial: null }

/** The code of a refusal, or what came instead. */
export const codeOf = (outcome: { readonly kind: string; readonly code?: string }): string =>
  outcome.kind === 'refused' ? (outcome.code ?? '') : outcome.kind
