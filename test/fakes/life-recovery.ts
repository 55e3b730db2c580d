// The part of a life in which identities are lost, copied, recovered and repaired.

import { decideDeny } from '#domain/core/approval.ts'
import type { IssuedCertificate, SigningOrder } from '#domain/core/certificate.ts'
import type { Change, Row } from '#domain/core/change.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { HolderFacts } from '#domain/identity/duplicate.ts'
import type { KeyInRequest } from '#domain/identity/node-certificate.ts'
import type { HardwareIdentity, Node } from '#domain/core/node.ts'
import type { Profile } from '#domain/core/profile.ts'
import type {
  PresentedCounter,
  PresentedRecovery,
  RecoveryRegistrationFacts,
} from '#domain/core/recovery-credential.ts'
import { decideRecover, recordRecovery } from '#domain/recovery/recovery.ts'
import { decideRecoveryWaits } from '#domain/recovery/recovery-waits.ts'
import { decideRehearsal } from '#domain/recovery/rehearsal.ts'
import { decideRepairBundle, decideRepairEvidence } from '#domain/recovery/repair.ts'
import type { RowTable } from './row-table.ts'
import { holder, hour } from './sample-rows.ts'

/** Which holder of the identity is connected during a recovery. */
export type Live = 'nobody' | 'claimant' | 'other'

/** How far behind the newest counter the one presented is; null: none is. */
export type Behind = 0 | 1 | 2 | null

export type RecoveryEvent =
  | {
      readonly do: 'recover'
      readonly node: string
      readonly key: string
      readonly with: 'registered' | 'former' | 'repair' | 'wrong'
      readonly behind: Behind
      readonly live: Live
    }
  | { readonly do: 'rehearse'; readonly node: string; readonly diskReserve: boolean; readonly behind: Behind }
  | { readonly do: 'bundle'; readonly node: string }
  | { readonly do: 'evidence'; readonly node: string; readonly ok: boolean }
  | { readonly do: 'deny'; readonly node: string }

/** What this part needs of the rest of the life. */
export type World = {
  readonly table: RowTable
  nowMs(): number
  next(prefix: string): string
  rules(): { readonly profile: Row<Profile>; readonly domain: Row<DomainSettings> }
  keyOf(key: string): KeyInRequest
  sign(order: SigningOrder, spki: string): IssuedCertificate
}

const by = { actor: 'operator:alice', source: '192.0.2.7', correlation: null }
export const claimant: HolderFacts = holder(1)

/** Of the one machine of a node. */
export const hardwareOf = (node: string): HardwareIdentity => ({ macs: [], bmcSerial: `BMC-${node}` })
export const otherOf = (live: Live): HolderFacts | null => (live === 'other' ? holder(2) : null)

/** Some agents register a key, some a token, some are too old for either. */
export const registrationOf = (node: string, key: string): RecoveryRegistrationFacts | null => {
  const number = Number(key.slice(1))
  if (number % 4 === 0) return null
  return number % 2 === 0 ? { kind: 'bearer' } : { kind: 'key', spki: `recovery-key-of-${node}`, publicKey: '' }
}

export const bearerHash = (node: Node, key: string): string => `token ${node.counter + 1} for ${key}`

export const counterOf = (node: Node, behind: Behind): PresentedCounter | null =>
  behind === null
    ? null
    : { domain: 'lab.example', node: node.id, epoch: node.epoch, counter: Math.max(0, node.counter - behind) }

const presented = (node: Node, what: Extract<RecoveryEvent, { do: 'recover' }>['with']): PresentedRecovery => {
  const registered = node.recovery?.credential
  switch (what) {
    case 'registered':
      if (registered?.kind === 'bearer') return { by: 'bearer', hash: registered.hash }
      return { by: 'key', spki: registered?.spki ?? 'none' }
    case 'former':
      return { by: 'bearer', hash: (registered?.kind === 'bearer' ? registered.former : null) ?? 'none' }
    case 'repair':
      return { by: 'repair', hash: node.repair?.hash ?? 'none' }
    case 'wrong':
      return { by: 'key', spki: 'somebody else' }
  }
}

export const planRecovery = (world: World, event: RecoveryEvent): Change | null => {
  const node = world.table.get('node', event.node)
  if (node === null) return null
  const facts = { node, by, nowMs: world.nowMs() }
  switch (event.do) {
    case 'recover':
      return recover(world, node, event)
    case 'rehearse': {
      const credential = presented(node.value, 'registered')
      const counter = counterOf(node.value, event.behind)
      const seen = {
        credential,
        counter,
        hardware: hardwareOf(event.node),
        diskReserve: event.diskReserve,
        clockSkewMs: 0,
      }
      return decideRehearsal({ ...facts, ...world.rules(), ...seen }).decided?.change ?? null
    }
    case 'bundle': {
      const { domain } = world.rules()
      const bundle = { id: world.next('r'), hash: world.next('h'), expiresAtMs: facts.nowMs + hour }
      const verdict = decideRepairBundle({ ...facts, ...bundle, reason: 'broken', domain })
      return verdict.kind === 'decided' ? verdict.change : null
    }
    case 'evidence': {
      const checks = [{ name: 'clock', ok: event.ok, detail: '' }]
      const verdict = decideRepairEvidence({ ...facts, checks })
      return verdict.kind === 'decided' ? verdict.change : null
    }
    case 'deny': {
      const verdict = decideDeny(facts)
      return verdict.kind === 'decided' ? verdict.change : null
    }
  }
}

const recover = (world: World, node: Row<Node>, event: Extract<RecoveryEvent, { do: 'recover' }>): Change | null => {
  const failure = { class: 'cert_expired', code: 'EXPIRED', sinceMs: 0, certNotAfterMs: null } as const
  const nowMs = world.nowMs()
  const register = registrationOf(event.node, event.key)
  const verdict = decideRecover({
    node,
    ...world.rules(),
    credential: presented(node.value, event.with),
    counter: counterOf(node.value, event.behind),
    key: world.keyOf(event.key),
    keyBan: world.table.get('key-ban', event.key),
    keyClaims: {
      certified: world.table.get('key-claim', event.key),
      registered: register?.kind === 'key' ? world.table.get('key-claim', register.spki) : null,
      registeredBan: null,
      ordered: null,
    },
    credentialBan: null,
    claimant: { ...claimant, ...hardwareOf(event.node) },
    otherHolder: otherOf(event.live),
    lastSeen: null,
    failure,
    register,
    withdrawn: [],
    orderId: world.next('o'),
    by,
    nowMs,
  })
  switch (verdict.kind) {
    case 'admitted':
      return recordRecovery(verdict, world.sign(verdict.order, event.key), () => bearerHash(node.value, event.key))
        .change
    case 'duplicate':
      return verdict.verdict.change
    case 'repeat':
      return null
    case 'refused': {
      const waits = decideRecoveryWaits({ node, refusal: verdict, failure, claimant, by, nowMs })
      return waits.kind === 'decided' ? waits.change : null
    }
  }
}
