// One Vault, asked over one client with one login. The PKI issuer and the keys in Transit share it.

import type { Clock } from '#platform/clock.ts'
import type { Timers } from '#platform/timers.ts'
import { IssuerFault, type IssuerLimits, openIssuerClient } from './issuer-client.ts'
import { measuringClock } from './issuer-clock.ts'
import { type LoginCondition, loginFix, type VaultLogin } from './vault-login.ts'
import { readReply, VaultFault, type VaultReply, type VaultRequest } from './vault-reply.ts'
import { openVaultSession } from './vault-session.ts'

export type VaultServer = {
  /** `https://vault.example:8200` */
  readonly address: string
  /** PEM: the only roots its server is verified with. */
  readonly roots: readonly string[]
  /** Of Vault Enterprise, and of OpenBao; null: none. */
  readonly namespace: string | null
  readonly login: VaultLogin
  readonly mostConnections: number
  readonly limits?: IssuerLimits
}

export type Vault = {
  /**
   * Whatever Vault answers, permission denied included. Rejects with an IssuerFault where nothing is known of what it did, and with a VaultFault
   * where it says itself that it cannot.
   */
  ask(request: VaultRequest, signal: AbortSignal): Promise<VaultReply>
  /** Of its clock, at its last answer; null: none has said. */
  aheadMs(): number | null
  readonly login: {
    /** For alerts and for `issuer show`. */
    condition(): LoginCondition
    /** The command that makes another one. */
    readonly fix: string
  }
  close(): void
}

/** A login so young has not ended by itself: Vault means what it says. */
const youngLoginMs = 10_000

/** Its version, with which each path there begins. */
const vaultApi = 'v1'

export const openVault = (
  { clock, timers }: { readonly clock: Clock; readonly timers: Timers },
  { address, roots, namespace, login, mostConnections, limits }: VaultServer,
): Vault => {
  const identity = login.kind === 'certificate' ? { key: login.key, cert: login.cert } : null
  const measured = measuringClock(
    clock,
    openIssuerClient(timers, { address, roots, identity, mostConnections, ...(limits && { limits }) }),
  )
  const { client } = measured
  const ended = new AbortController()

  const exchange = async (request: VaultRequest, token: string | null, signal: AbortSignal): Promise<VaultReply> => {
    const { path, ...rest } = request
    const answer = await client.ask(
      {
        ...rest,
        path: `/${vaultApi}/${path.split('/').map(encodeURIComponent).join('/')}`,
        headers: {
          'x-vault-request': 'true',
          ...(token === null ? {} : { 'x-vault-token': token }),
          ...(namespace === null ? {} : { 'x-vault-namespace': namespace }),
        },
      },
      signal,
    )
    const reply = readReply(answer, [...session.secrets(), ...(token === null ? [] : [token])])
    if (reply.status < 500 && reply.status !== 429) return reply
    throw faultOf(address, reply)
  }

  const session = openVaultSession({
    clock,
    timers,
    login,
    ask: (request, token) => exchange(request, token, ended.signal),
  })

  /** Vault has forgotten the login: it was revoked, or this machine has slept. It answers the same to who may not do something. */
  const isForgotten = async (token: string, { said }: VaultReply, signal: AbortSignal): Promise<boolean> => {
    if (said.includes('invalid token')) return true
    if (session.ageMs(token) < youngLoginMs) return false
    return (await exchange({ method: 'GET', path: 'auth/token/lookup-self' }, token, signal)).status === 403
  }

  return {
    ask: async (request, signal) => {
      const token = await withSignal(session.token(), signal)
      const reply = await exchange(request, token, signal)
      if (reply.status !== 403 || !(await isForgotten(token, reply, signal))) return reply
      session.reject(token)
      return exchange(request, await withSignal(session.token(), signal), signal)
    },
    aheadMs: measured.aheadMs,
    login: { condition: () => session.condition(), fix: loginFix(login) },
    close: () => {
      ended.abort()
      session.close()
      client.close()
    },
  }
}

const faultOf = (address: string, { status, said }: VaultReply): VaultFault => {
  const { host } = new URL(address)
  if (status === 429) return new VaultFault('busy', `${host}: a rate limit of Vault: ${said}`, true)
  if (status === 503 && /sealed|not initialized/i.test(said))
    return new VaultFault('sealed', `${host}: Vault is sealed: unseal it (vault operator unseal)`, true)
  return new VaultFault('broken', `${host}: Vault has failed (${status}): ${said}`, false)
}

/** A login is for all who wait for it: one of them that gives up does not end it. */
const withSignal = <T>(promise: Promise<T>, signal: AbortSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    const stop = (): void => reject(new IssuerFault('stopped while logging in to Vault', 'stopped', true))
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop)
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
