// Signing by a step-ca: enrollments and recoveries by a JWK provisioner, renewals by an X5C provisioner (docs/issuers/STEP-CA.md).

import { hash } from 'node:crypto'
import type { Signer } from '#pki/signer.ts'
import type { Clock } from '#platform/clock.ts'
import type { Random } from '#platform/random.ts'
import type { Timers } from '#platform/timers.ts'
import { type IssuerLimits, openIssuerClient } from '#plane/outside/issuer-client.ts'
import { measuringClock } from '#plane/outside/issuer-clock.ts'
import type { Abilities, OutsideSigner, TestSample } from './outside-signer.ts'
import type { RenewalCredential } from './renewal-credential.ts'
import { NoDatabase, revokeThere, signThere, type StepCa } from './step-ca-calls.ts'
import { testStepCa } from './step-ca-test.ts'
import { provisionerName } from './step-ca-token.ts'

export type StepCaOptions = {
  readonly timers: Timers
  readonly clock: Pick<Clock, 'nowMs'>
  readonly random: Pick<Random, 'bytes'>
  /** `https://HOST:PORT`: step-ca has to have that host among its `dnsNames`. */
  readonly address: string
  /** PEM: what its TLS certificate hangs under. */
  readonly serverRoots: readonly string[]
  /** DER: what its leaves hang under. */
  readonly roots: readonly [Uint8Array, ...Uint8Array[]]
  readonly mostConnections: number
  readonly limits?: IssuerLimits
  /** A JWK provisioner. */
  readonly enrollment: { readonly name: string; readonly keyId: string; readonly key: Signer }
  /** An X5C provisioner. The credential is replaced in time, and its root never is. */
  readonly renewal: {
    readonly name: string
    /** DER. */
    readonly root: Uint8Array
    credential(): RenewalCredential
  }
  /** Whether it can revoke is known from its last test. Null: it has had none. */
  readonly revokes: boolean | null
  samples(): Promise<readonly TestSample[]>
}

export const openStepCa = (options: StepCaOptions): OutsideSigner & { close(): void } => {
  const { enrollment, renewal, timers } = options
  for (const { name } of [enrollment, renewal])
    if (!provisionerName.test(name)) throw new Error('a name of a provisioner that cannot be in an address')
  const server = { ...options, roots: options.serverRoots, identity: null }
  const watched = measuringClock(options.clock, openIssuerClient(timers, server))
  const { client } = watched
  const ca: StepCa = {
    client,
    minting: {
      clock: options.clock,
      random: options.random,
      origin: new URL(options.address).origin,
      rootHash: hash('sha256', options.roots[0], 'hex'),
    },
    enrollment: { name: enrollment.name, key: enrollment.key, known: { by: 'key', id: enrollment.keyId } },
    renewal: () => {
      const { key, certificate } = renewal.credential()
      return { name: renewal.name, key, known: { by: 'chain', chain: [certificate.der] } }
    },
  }
  let revokes = options.revokes ?? true
  const revoke: OutsideSigner['revoke'] = async (serial, reason, signal) => {
    try {
      const outcome = await revokeThere(ca, serial, reason, signal)
      revokes = true
      return outcome
    } catch (error) {
      if (error instanceof NoDatabase) revokes = false
      throw error
    }
  }
  return {
    get abilities(): Abilities {
      return { takesSerial: true, revokes, lists: false }
    },
    get aheadMs() {
      return watched.aheadMs()
    },
    sign: (attempt, signal) =>
      signThere(ca, attempt, attempt.purpose === 'renewal' ? ca.renewal() : ca.enrollment, signal),
    revoke,
    // Serials are chosen here: nothing has to be looked for.
    find: async () => null,
    test: async (signal) =>
      testStepCa({ ...options, ca, server, revoke, aheadMs: watched.aheadMs }, await options.samples(), signal),
    close: () => client.close(),
  }
}
