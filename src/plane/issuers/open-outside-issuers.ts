// Outside issuers as the plane uses them: a signer for each, made of its row and its secrets and made anew when those change, behind a gate
// of slots and a breaker.

import type { IssuerAbilities, IssuerAccess, OutsideIssuer } from '#domain/issuers/outside-issuer.ts'
import type { RevocationReason } from '#domain/core/certificate.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { clockWords } from '#domain/issuers/issuer-clock.ts'
import { slots } from '#domain/issuers/issuer-pace.ts'
import type { Core } from '#plane/core/core.ts'
import { takeTurnsByKey } from '#plane/core/turns.ts'
import { boundedText } from '#domain/core/change.ts'
import { faultOf, openIssuerGate, type GateView, type IssuerGate } from './issuer-gate.ts'
import type { IssuerSecrets, Secrets } from './issuer-secrets.ts'
import type { KnownIssuers } from './known-issuers.ts'
import type { IssuerDoor } from './outside-orders.ts'
import type { LoginCondition } from '#plane/outside/vault-login.ts'
import type { OutsideSigner, SettingFault, TestSample } from './outside-signer.ts'
import type { Samples } from './test-samples.ts'

export type OutsideIssuers = IssuerDoor & {
  /** Rejects where it is not known what became of it. Also of an issuer that is disabled. */
  revoke(
    id: string,
    serial: string,
    reason: RevocationReason,
    signal: AbortSignal,
  ): Promise<'revoked' | 'unknown there' | Refusal>
  test(issuer: OutsideIssuer, samples: Pick<Samples, 'samples' | 'longestMs'>): Promise<TestedIssuer | Refusal>
  /** PEM of what an X5C provisioner for renewals has as its roots; null: none is needed, or its signer cannot be made. */
  renewalRoot(issuer: OutsideIssuer): Promise<string | null>
  /** Null: this replica has no login there, or the issuer needs none. */
  login(issuer: Pick<OutsideIssuer, 'id'>): LoginCondition | null
  /** Of the issuer as this replica finds it. */
  health(issuer: Pick<OutsideIssuer, 'id' | 'name'>): IssuerHealth
  close(): void
}

/** `aheadMs`: of its clock, at its last answer; null: it has not said. */
export type IssuerHealth = GateView & { readonly aheadMs: number | null }

/** `abilities`: null where it has a fault. */
export type TestedIssuer = {
  readonly kind: 'tested'
  readonly faults: readonly SettingFault[]
  readonly abilities: Omit<IssuerAbilities, 'testedAtMs'> | null
}

/** A signer that holds connections, and maybe a login that it renews. */
export type OpenSigner = OutsideSigner & {
  /** PEM; null: it renews as it enrolls. */
  readonly renewalRoot: string | null
  /** Of a login that ends; null: it has none. */
  login(): LoginCondition | null
  close(): void
}

/** What differs between step-ca and Vault, beside how they sign. */
export type IssuerKinds = {
  /** What is wrong with the secrets that an operator gave; null: nothing. Nothing of a secret is in it. */
  unfit(access: IssuerAccess, secrets: Secrets): { readonly name: string; readonly why: string } | null
  /** The secrets that the plane makes itself, once for an issuer. */
  make(access: IssuerAccess): Secrets
  /** All secrets, with those that the plane has made and that end made anew; null: none is due. `longestMs`: of the leaves that it is to sign. */
  renew(access: IssuerAccess, secrets: Secrets, longestMs: number): Secrets | null
  /** Rejects where the row or a secret cannot be used; its message is for operators. */
  open(given: SignerRequest): Promise<OpenSigner> | OpenSigner
}

export type SignerRequest = {
  readonly issuer: OutsideIssuer
  readonly secrets: Secrets
  readonly mostConnections: number
  readonly samples: readonly TestSample[]
}

type Held = { readonly made: string; readonly signer: OpenSigner }

const testWithinMs = 60_000
/** Two attempts, each with its three tries to send. */
const longestUseMs = 150_000
const testConnections = 2

export const openOutsideIssuers = (
  core: Pick<Core, 'clock' | 'timers' | 'log'>,
  parts: {
    readonly known: KnownIssuers
    readonly secrets: Pick<IssuerSecrets, 'find'>
    readonly kinds: Pick<IssuerKinds, 'open'>
  },
): OutsideIssuers => {
  const { known, secrets, kinds } = parts
  const gates = new Map<string, IssuerGate>()
  const held = new Map<string, Held>()
  const inTurn = takeTurnsByKey()
  const aheadAtTest = new Map<string, number | null>()

  const gateOf = ({ id, name }: Pick<OutsideIssuer, 'id' | 'name'>): IssuerGate => {
    const gate = gates.get(id) ?? openIssuerGate(core, name)
    gates.set(id, gate)
    return gate
  }
  /** Signers that were replaced, until what they had under way is over: cut off, each would be a fault of the issuer, and an orphan there. */
  const leaving = new Map<OpenSigner, () => void>()
  const drop = (id: string): void => {
    const signer = held.get(id)?.signer
    held.delete(id)
    if (signer === undefined) return
    const close = (): void => {
      leaving.delete(signer)
      signer.close()
    }
    leaving.set(signer, core.timers.after(longestUseMs, close, 'background'))
  }
  /** One at a time for each issuer: two would log in twice. */
  const signerFor = (issuer: OutsideIssuer): Promise<OpenSigner | null> =>
    inTurn(issuer.id, async () => {
      const made = madeOf(issuer)
      const before = held.get(issuer.id)
      if (before?.made === made) return before.signer
      const found = await secrets.find(issuer)
      if (found === null) return null
      const signer = await kinds.open({ issuer, secrets: found, mostConnections: slots, samples: [] })
      drop(issuer.id)
      held.set(issuer.id, { made, signer })
      return signer
    })
  known.onChange((issuer) => {
    if (issuer.state.kind === 'retired') {
      drop(issuer.id)
      gates.delete(issuer.id)
      aheadAtTest.delete(issuer.id)
    } else if (held.get(issuer.id)?.made !== madeOf(issuer)) drop(issuer.id)
  })

  const unavailable = (why: string): Refusal => ({ ...refuse('ISSUER_UNAVAILABLE', why), retryAfterMs: 30_000 })

  return {
    async enter(name) {
      const issuer = known.find(name)
      const barred = barredFor(name, issuer)
      if (barred !== null || issuer === null) return unavailable(barred ?? name)
      const slot = await gateOf(issuer).enter()
      if (slot.kind === 'refused') return slot
      try {
        const signer = await signerFor(issuer)
        if (signer !== null) return { kind: 'entered', issuer, signer, leave: (outcome) => slot.leave(outcome) }
        slot.leave({ kind: 'fault', why: 'its secrets are not in the custody of keys' })
        return unavailable(`${name}: its secrets are not in the custody of keys`)
      } catch (error) {
        core.log.warn({ err: error, issuer: name }, 'an outside issuer cannot be used')
        slot.leave(faultOf(error))
        return unavailable(`${name} cannot be used`)
      }
    },
    async signerOf(id) {
      const issuer = known.byId(id)
      return issuer === null || issuer.state.kind === 'retired' || issuer.forged ? null : signerFor(issuer)
    },
    async revoke(id, serial, reason, signal) {
      const issuer = known.byId(id)
      if (issuer === null || issuer.state.kind === 'retired' || issuer.forged)
        return unavailable(`there is no issuer ${id}`)
      const slot = await gateOf(issuer).enter()
      if (slot.kind === 'refused') return slot
      try {
        const signer = await signerFor(issuer)
        if (signer === null) throw new Error('its secrets are not in the custody of keys')
        const outcome = await signer.revoke(serial, reason, signal)
        slot.leave({ kind: 'answered' })
        return outcome
      } catch (error) {
        // An issuer that cannot revoke can still sign: a revocation that fails opens no breaker.
        slot.leave({ kind: 'not-asked' })
        throw error
      }
    },
    async test(issuer, { samples, longestMs }) {
      const found = await secrets.find(issuer)
      if (found === null)
        return refuse('ISSUER_NOT_READY', `${issuer.name}: its secrets are not in the custody of keys`)
      // One of its own: what it learns and the connections that it opens are for this test.
      let signer: OpenSigner | null = null
      try {
        signer = await kinds.open({ issuer, secrets: found, mostConnections: testConnections, samples })
        const noted = await signer.test(AbortSignal.timeout(testWithinMs))
        aheadAtTest.set(issuer.id, signer.aheadMs)
        // First: what else is wrong may follow from it.
        const faults = [...clockFault(signer.aheadMs, samples), ...noted]
        const { takesSerial, revokes, lists } = signer.abilities
        return {
          kind: 'tested',
          faults,
          abilities: faults.length > 0 ? null : { takesSerial, revokes, lists, longestMs },
        }
      } catch (error) {
        const why = boundedText(error instanceof Error ? error.message : String(error))
        const fix = `see that it runs, and where: muster issuer show ${issuer.name}`
        return { kind: 'tested', faults: [{ setting: 'address', why, fix }], abilities: null }
      } finally {
        signer?.close()
      }
    },
    renewalRoot: (issuer) =>
      signerFor(issuer).then(
        (signer) => signer?.renewalRoot ?? null,
        () => null,
      ),
    login: ({ id }) => held.get(id)?.signer.login() ?? null,
    health: (issuer) => ({
      ...gateOf(issuer).view(),
      aheadMs: held.get(issuer.id)?.signer.aheadMs ?? aheadAtTest.get(issuer.id) ?? null,
    }),
    close() {
      for (const id of held.keys()) drop(id)
      for (const [signer, cancel] of leaving) {
        cancel()
        signer.close()
      }
      leaving.clear()
    },
  }
}

const clockFault = (aheadMs: number | null, samples: Samples['samples']): readonly SettingFault[] => {
  const toleranceMs = Math.min(...samples.map((sample) => sample.toleranceMs))
  const why = aheadMs !== null && Math.abs(aheadMs) > toleranceMs ? clockWords(aheadMs) : null
  return why === null ? [] : [{ setting: 'clock', why, fix: 'chronyc tracking' }]
}

/** What a signer is made of. */
const madeOf = ({ url, serverRoots, roots, access, secrets }: OutsideIssuer): string =>
  JSON.stringify([url, serverRoots, roots, access, secrets])

const barredFor = (name: string, issuer: OutsideIssuer | null): string | null => {
  if (issuer === null) return `there is no issuer ${name}`
  if (issuer.forged) return `the row of ${name} is not one that a plane of this domain wrote`
  if (issuer.state.kind === 'disabled') return `${name} is disabled: ${issuer.state.why}`
  return issuer.abilities === null ? `${name} has not passed a test` : null
}
