// A small domain to live in: events by name, each turned into the change its decision makes of the rows as they are.
// Planning and committing are apart, so that two events can be decided on the same rows.

import { decideApprove } from '#domain/core/approval.ts'
import {
  certificateDenialKey,
  epochDenialKey,
  issuerDenialKey,
  type IssuedCertificate,
  type SigningOrder,
  everySlot,
  slotsOf,
} from '#domain/core/certificate.ts'
import type { Change, Row, RowKind, RowTypes, Decided } from '#domain/core/change.ts'
import { decideClear, decideRaise } from '#domain/core/conditions.ts'
import { judgeHardware, judgeToken, type Credential } from '#domain/enrollment/credential.ts'
import { defaultDomainSettings } from '#domain/core/domain-settings.ts'
import { decideDrain, decideDrained, decideUndrain } from '#domain/fleet/drain.ts'
import { decideEnroll, recordEnrollment } from '#domain/enrollment/enrollment.ts'
import { decideFirstUse } from '#domain/node/first-use.ts'
import { decideExpired, decideExpiring, decideLapse, decideStuck } from '#domain/node/liveness.ts'
import type { KeyClaimFacts } from '#domain/identity/key-claim.ts'
import type { KeyInRequest } from '#domain/identity/node-certificate.ts'
import type { Node } from '#domain/core/node.ts'
import { judgeCertificate } from '#domain/identity/presented-certificate.ts'
import type { NodePrincipal } from '#domain/core/principal.ts'
import type { Profile } from '#domain/core/profile.ts'
import {
  addSteps,
  decidePurge,
  emptySurvey,
  nothingPurged,
  purgeStep,
  type PurgedKind,
  type PurgeStep,
  type PurgeSurvey,
} from '#domain/revocation/purge.ts'
import type { FormerNode } from '#domain/core/purged-node.ts'
import { decideQuarantine, decideRelease } from '#domain/revocation/quarantine.ts'
import type { RecoveryRegistrationFacts } from '#domain/core/recovery-credential.ts'
import { decideRegister } from '#domain/enrollment/registration.ts'
import { decideRenew, recordRenewal } from '#domain/identity/renewal.ts'
import { decideDecommission, decideRevoke } from '#domain/revocation/revocation.ts'
import { decideSettle } from '#domain/identity/settle.ts'
import { decideCreateToken, decideRevokeToken } from '#domain/enrollment/token.ts'
import { nothingHeld } from '#domain/network/wireguard-part.ts'
import {
  bearerHash,
  claimant,
  hardwareOf,
  counterOf,
  otherOf,
  planRecovery,
  registrationOf,
  type Behind,
  type Live,
  type RecoveryEvent,
  type World,
} from './life-recovery.ts'
import { ownersOf, rowTable, type RowTable } from './row-table.ts'

/** `on` picks a token or a certificate among all there ever were, counted from the newest. */
export type LifeEvent =
  | { readonly do: 'register' | 'purge'; readonly node: string }
  | { readonly do: 'token'; readonly node: string | null; readonly replace: boolean }
  | { readonly do: 'withdraw'; readonly on: number }
  | { readonly do: 'enroll'; readonly on: number; readonly node: string; readonly key: string }
  | { readonly do: 'hardware'; readonly node: string; readonly key: string; readonly probe: 'answered' | 'silent' }
  | { readonly do: 'use'; readonly on: number }
  /** `behind` and `live` left out: an older agent, which says nothing of itself. */
  | { readonly do: 'renew'; readonly on: number; readonly key: string; readonly behind?: Behind; readonly live?: Live }
  | RecoveryEvent
  | { readonly do: 'approve'; readonly node: string; readonly person: string }
  | { readonly do: (typeof aboutNode)[number]; readonly node: string }
  | { readonly do: 'wait'; readonly ms: number }

export const aboutNode = [
  'lapse',
  'stuck',
  'expire',
  'drain',
  'drained',
  'undrain',
  'quarantine',
  'release',
  'revoke',
  'decommission',
  'raise',
  'clear',
  'unpersisted',
  'persisted',
  'expiring',
  'settle',
] as const

export type Life = {
  readonly table: RowTable
  nowMs(): number
  /** Null: the decision was no, or nothing is to be written. */
  plan(event: LifeEvent): Change | null
}

const by = { actor: 'operator:alice', source: '192.0.2.7', correlation: null }

export const startLife = (profile: Profile, startMs: number): Life => {
  const table = rowTable()
  table.commit({
    reads: [
      { row: 'profile', key: profile.name, version: 0 },
      { row: 'domain', key: 'domain', version: 0 },
    ],
    writes: [
      { put: 'profile', value: profile },
      { put: 'domain', value: defaultDomainSettings('lab.example') },
    ],
    entries: [
      {
        type: 'domain.created',
        atMs: startMs,
        ...by,
        node: null,
        epoch: null,
        token: null,
        issuer: null,
        serial: null,
        body: {},
      },
    ],
  })
  let nowMs = startMs
  let made = 0
  const next = (prefix: string): string => `${prefix}${(++made).toString(16)}`

  const must = <K extends RowKind>(row: K, key: string): Row<RowTypes[K]> => {
    const found = table.get(row, key)
    if (found === null) throw new Error(`no ${row} ${key}`)
    return found
  }
  const rules = () => ({ profile: must('profile', profile.name), domain: must('domain', 'domain') })
  const newest = <K extends RowKind>(row: K, on: number) => table.all(row).toReversed()[on] ?? null
  const keyOf = (key: string): KeyInRequest => ({ kind: 'key', keyType: 'p256', spki: new Uint8Array(), spkiHash: key })
  const sign = (order: SigningOrder, spki: string): IssuedCertificate => {
    const serial = next('c')
    const notAfterMs = order.issuedAtMs + order.lifetimeMs
    return {
      issuer: 'ca1',
      serial,
      spki,
      sha256: serial,
      issuedAtMs: order.issuedAtMs,
      notAfterMs,
      der: '',
      order: order.id,
    }
  }

  const formerOf = (id: string): FormerNode => ({
    key: `hash of ${id}`,
    row: table.get('purged-node', `hash of ${id}`),
  })

  const claimsOf = (key: string, register: RecoveryRegistrationFacts | null): KeyClaimFacts => ({
    certified: table.get('key-claim', key),
    registered: register?.kind === 'key' ? table.get('key-claim', register.spki) : null,
    registeredBan: register?.kind === 'key' ? table.get('key-ban', register.spki) : null,
    ordered: null,
  })

  const enroll = (credential: Credential, nodeId: string, key: string, probe: 'answered' | 'silent'): Change | null => {
    const node = table.get('node', nodeId)
    const facts = {
      credential,
      node,
      former: formerOf(nodeId),
      nodeId,
      ...rules(),
      key: keyOf(key),
      keyBan: table.get('key-ban', key),
      keyClaims: claimsOf(key, registrationOf(nodeId, key)),
      reported: { hardware: hardwareOf(nodeId), facts: null },
      recovery: registrationOf(nodeId, key),
      proof: null,
      wireguard: null,
      wireguardHeld: nothingHeld,
      withdrawn: [],
      holders: null,
      orderId: next('o'),
      by,
      nowMs,
    }
    const first = decideEnroll({ ...facts, probe: 'not-tried' })
    const verdict =
      first.kind === 'probe'
        ? decideEnroll({ ...facts, probe: probe === 'silent' ? { silentMs: 3_600_000 } : probe })
        : first
    if (verdict.kind === 'repeat') return verdict.spends
    if (verdict.kind !== 'admitted') return null
    return recordEnrollment(verdict, sign(verdict.order, key), () => bearerHash(verdict.before, key)).change
  }

  const enrollByToken = (event: Extract<LifeEvent, { do: 'enroll' }>): Change | null => {
    const credential = judgeToken(newest('token', event.on), nowMs, 300_000)
    if ('code' in credential || credential.method !== 'token') return null
    const { scope, state } = credential.token.value
    if (scope.kind === 'node') return enroll(credential, scope.node, event.key, 'silent')
    if (state.kind === 'used') return enroll(credential, state.node, event.key, 'silent')
    return table.get('node', event.node) === null ? enroll(credential, event.node, event.key, 'silent') : null
  }

  const enrollByHardware = (event: Extract<LifeEvent, { do: 'hardware' }>): Change | null => {
    const hardware = hardwareOf(event.node)
    const credential = judgeHardware(hardware, ownersOf(table, hardware))
    return 'code' in credential ? null : enroll(credential, credential.node.value.id, event.key, event.probe)
  }

  const presented = (on: number): { principal: NodePrincipal; node: Row<Node> } | null => {
    const row = newest('certificate', on)
    if (row === null || row.value.subject.kind !== 'node') return null
    const node = must('node', row.value.subject.node)
    const { issuer, serial, subject } = row.value
    const denied = [epochDenialKey(node.value.id, subject.epoch), certificateDenialKey(issuer, serial)].some(
      (key) => table.get('denial', key) !== null,
    )
    const who = judgeCertificate({
      row: row.value,
      node: node.value,
      denied,
      keyBanned: false,
      issuerWithdrawn: table.get('denial', issuerDenialKey(issuer)) !== null,
      source: '192.0.2.8',
      toleranceMs: 300_000,
      nowMs,
    })
    return 'code' in who ? null : { principal: who, node }
  }

  const heldKeyBan = (node: Node) => {
    const slots = slotsOf(node)
    return slots === null ? null : table.get('key-ban', slots.current.spki)
  }

  /** As the flow does it: a first use is committed before anything else, so a renewal may take two events. */
  const renew = (event: Extract<LifeEvent, { do: 'renew' }>): Change | null => {
    const caller = presented(event.on)
    if (caller === null) return null
    const facts = { ...caller, ...rules(), by, nowMs }
    const use = decideFirstUse(facts)
    if (use.kind !== 'nothing-new') return changeOf(use)
    const ban = table.get('key-ban', event.key)
    const { live } = event
    const verdict = decideRenew({
      ...facts,
      key: keyOf(event.key),
      keyBan: ban,
      currentKeyBan: heldKeyBan(caller.node.value),
      keyClaims: claimsOf(event.key, registrationOf(caller.node.value.id, event.key)),
      counter: counterOf(caller.node.value, event.behind ?? null),
      register: registrationOf(caller.node.value.id, event.key),
      claimant: live === undefined ? { ...claimant, instance: null } : claimant,
      claimantLive: live === 'claimant',
      otherHolder: otherOf(live ?? 'nobody'),
      lastSeen: null,
      withdrawn: [],
      orderId: next('o'),
    })
    if (verdict.kind === 'duplicate') return verdict.verdict.change
    if (verdict.kind !== 'admitted') return null
    return recordRenewal(verdict, sign(verdict.order, event.key), () => bearerHash(caller.node.value, event.key)).change
  }

  const operate = (what: (typeof aboutNode)[number], id: string): Change | null => {
    const node = table.get('node', id)
    if (node === null) return null
    const { domain } = rules()
    const facts = { node, by, nowMs }
    const slots = slotsOf(node.value)
    const bans = (slots === null ? [] : everySlot(slots)).map(({ spki }) => ({ spki, row: table.get('key-ban', spki) }))
    const condition = { name: 'clock_skew', reason: 'skewed', evidence: {} } as const
    const idle = { allocations: 0 }
    switch (what) {
      case 'lapse':
        return changeOf(decideLapse({ ...facts, lastPresentMs: nowMs - domain.value.livenessGraceMs, grace: domain }))
      case 'stuck':
        return changeOf(decideStuck({ ...facts, domain }))
      case 'expire':
        return changeOf(decideExpired(facts))
      case 'drain':
        return changeOf(decideDrain({ ...facts, allocations: [] }))
      case 'drained':
        return changeOf(decideDrained({ ...facts, allocations: [] }))
      case 'undrain':
        return changeOf(decideUndrain({ ...facts, allocations: [] }))
      case 'quarantine':
        return changeOf(decideQuarantine({ ...facts, reason: 'odd', domain }))
      case 'release':
        return changeOf(decideRelease(facts))
      case 'revoke':
        return changeOf(decideRevoke({ ...facts, reason: 'stolen', domain, certificates: [], bans }))
      case 'decommission':
        return changeOf(decideDecommission({ ...facts, ...idle, force: false, domain, certificates: [], bans }))
      case 'raise':
        return changeOf(decideRaise({ ...facts, ...condition }))
      case 'clear':
        return changeOf(decideClear({ ...facts, name: condition.name }))
      case 'unpersisted':
        return changeOf(decideRaise({ ...facts, ...condition, name: 'not_persisted' }))
      case 'persisted':
        return changeOf(decideClear({ ...facts, name: 'not_persisted' }))
      case 'expiring':
        return changeOf(decideExpiring(facts))
      case 'settle':
        return changeOf(decideSettle({ ...facts, profile: rules().profile, connected: true, reason: 'wiped' }))
    }
  }

  const world: World = { table, nowMs: () => nowMs, next, rules, keyOf, sign }

  const plan = (event: LifeEvent): Change | null => {
    switch (event.do) {
      case 'wait':
        nowMs += event.ms
        return null
      case 'register': {
        const hardware = hardwareOf(event.node)
        const existing = table.get('node', event.node)
        const owners = ownersOf(table, hardware)
        const former = formerOf(event.node)
        return changeOf(decideRegister({ id: event.node, ...rules(), hardware, existing, former, owners, by, nowMs }))
      }
      case 'token': {
        const node = event.node === null ? null : table.get('node', event.node)
        const secretHash = next('h')
        const facts = { tokenId: next('t'), secretHash, nodeId: event.node, node, replace: event.replace, ttlMs: null }
        const former = event.node === null || node !== null ? null : formerOf(event.node)
        return changeOf(decideCreateToken({ ...facts, former, serverName: null, ...rules(), by, nowMs }))
      }
      case 'purge': {
        const node = table.get('node', event.node)
        if (node === null) return null
        const former = formerOf(event.node)
        const facts = { node, former, survey: surveyOf(table, event.node, former.key), livedMs: nowMs }
        return changeOf(decidePurge({ ...facts, reason: 'asked for', by, nowMs }, nothingPurged))
      }
      case 'withdraw': {
        const token = newest('token', event.on)
        return token === null ? null : changeOf(decideRevokeToken({ token, by, nowMs }))
      }
      case 'enroll':
        return enrollByToken(event)
      case 'hardware':
        return enrollByHardware(event)
      case 'use': {
        const caller = presented(event.on)
        return caller === null ? null : changeOf(decideFirstUse({ ...caller, ...rules(), by, nowMs }))
      }
      case 'renew':
        return renew(event)
      case 'approve': {
        const node = table.get('node', event.node)
        if (node === null) return null
        const person = { ...by, actor: `operator:${event.person}` }
        return changeOf(decideApprove({ node, profile: rules().profile, by: person, nowMs }))
      }
      case 'recover':
      case 'rehearse':
      case 'bundle':
      case 'evidence':
      case 'deny':
        return planRecovery(world, event)
      default:
        return operate(event.do, event.node)
    }
  }

  return { table, nowMs: () => nowMs, plan }
}

const surveyOf = (table: RowTable, id: string, hash: string): PurgeSurvey => {
  const isOfNode = ({ scope, state }: RowTypes['token']): boolean => {
    if (scope.kind === 'node') return scope.node === id
    return (state.kind === 'used' || state.kind === 'bound') && state.node === id
  }
  const every = <K extends PurgedKind>(kind: K, isIts: (value: RowTypes[K]) => boolean): readonly PurgeStep[] =>
    table
      .all(kind)
      .filter(({ value }) => isIts(value))
      .map((row) => purgeStep(kind, row, id, hash))
  return addSteps(emptySurvey, [
    ...every('certificate', ({ subject }) => subject.kind === 'node' && subject.node === id),
    ...every('denial', (denial) => denial.kind === 'epoch' && denial.node === id),
    ...every('token', isOfNode),
    ...every('key-claim', ({ holders }) => holders.some(({ node }) => node === id)),
  ])
}

const changeOf = (verdict: Decided | { readonly kind: string }): Change | null =>
  verdict.kind === 'decided' && 'change' in verdict ? verdict.change : null
