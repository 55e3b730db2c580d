// The ways to log in at Vault: AppRole, TLS certificate, and a token that something else has made. How a login is kept is in vault-session.ts.

import { X509Certificate } from 'node:crypto'
import { readShortFile } from '#platform/files.ts'
import { IssuerFault } from './issuer-client.ts'
import { type AskVault, VaultFault, type VaultReply } from './vault-reply.ts'

export type VaultLogin =
  | { readonly kind: 'approle'; readonly mount: string; readonly roleId: string; readonly secretId: string }
  /** PEM. The connections present it, also later: Vault renews such a login only to who shows it. */
  | {
      readonly kind: 'certificate'
      readonly mount: string
      readonly role: string
      readonly key: string
      readonly cert: string
    }
  /** `where`: for messages. `read` throws a sentence where there is none. */
  | { readonly kind: 'token'; readonly where: string; readonly read: () => string }

/** A file on this machine, written by an operator or by Vault Agent. It is read again at each renewal. */
export const tokenInFile = (file: string): VaultLogin => ({
  kind: 'token',
  where: file,
  read: () => {
    const found = readShortFile(file, longestToken)
    if (found === null) throw new Error(`there is no file ${file}`)
    if (found === 'too-long') throw new Error(`${file} is too long for a token`)
    const token = found.text.trim()
    if (!/^[\x21-\x7e]+$/.test(token)) throw new Error(`${file} does not hold one token`)
    return token
  },
})

const longestToken = 4096

/** `untilMs`: by the wall clock; null: it has no end. */
export type LoginCondition =
  | { readonly kind: 'none' }
  | { readonly kind: 'good'; readonly untilMs: number | null }
  /** A third of its life is left, and it was not renewed. */
  | { readonly kind: 'ending'; readonly untilMs: number; readonly why: string }
  | { readonly kind: 'failed'; readonly sinceMs: number; readonly why: string }

export type Entered = {
  readonly token: string
  readonly lifeMs: number | null
  readonly leftMs: number | null
  readonly isRenewable: boolean
}

export const loggedIn = async (login: VaultLogin, ask: AskVault): Promise<Entered> => {
  switch (login.kind) {
    case 'approle': {
      const json = { role_id: login.roleId, secret_id: login.secretId }
      return entered(login, await ask({ method: 'POST', path: `auth/${login.mount}/login`, json }, null))
    }
    case 'certificate': {
      const json = { name: login.role }
      return entered(login, await ask({ method: 'POST', path: `auth/${login.mount}/login`, json }, null))
    }
    case 'token': {
      const token = readToken(login)
      const reply = await ask({ method: 'GET', path: 'auth/token/lookup-self' }, token)
      if (reply.status === 403) throw refusedLogin(login, 'it has ended, was revoked, or may not look itself up')
      if (reply.status !== 200) throw refusedLogin(login, reply.said)
      const { ttl, creation_ttl: creationTtl, renewable } = reply.data ?? {}
      const left = seconds(ttl)
      if (left === null || left === 0) return { token, lifeMs: null, leftMs: null, isRenewable: false }
      return { token, lifeMs: Math.max(left, seconds(creationTtl) ?? 0), leftMs: left, isRenewable: renewable === true }
    }
  }
}

const entered = (login: VaultLogin, reply: VaultReply): Entered => {
  if (reply.status !== 200) {
    const isMissing = reply.status === 404
    if (isMissing) throw refusedLogin(login, `there is no auth method auth/${mountOf(login)}`)
    const isLocked = reply.status === 403 && login.kind === 'approle'
    throw refusedLogin(login, isLocked ? `${reply.said}: ${whyDenied}` : reply.said)
  }
  return authOf(reply, null)
}

/** Vault says no more. */
const whyDenied = 'there is no such auth method, or Vault has locked the role after too many refusals'

export const authOf = ({ auth }: VaultReply, before: string | null): Entered => {
  const token = auth?.['client_token']
  const life = seconds(auth?.['lease_duration'])
  if (typeof token !== 'string' || token === '' || life === null)
    throw new VaultFault('broken', 'Vault has answered a login with something that is none', true)
  if (before !== null && token !== before) throw new VaultFault('broken', 'Vault has renewed another login', true)
  const lifeMs = life === 0 ? null : life
  return { token, lifeMs, leftMs: lifeMs, isRenewable: auth?.['renewable'] === true }
}

const seconds = (value: unknown): number | null =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value * 1000 : null

export const readToken = (login: VaultLogin & { kind: 'token' }): string => {
  try {
    return login.read()
  } catch (error) {
    throw faultOf(login, error)
  }
}

const mountOf = (login: VaultLogin): string => (login.kind === 'token' ? 'token' : login.mount)

/** With the setting that is at fault. */
export const named = (login: VaultLogin): string => {
  switch (login.kind) {
    case 'approle':
      return `the login by AppRole at auth/${login.mount} (role ID ${login.roleId.slice(0, 8)}...)`
    case 'certificate':
      return `the login by TLS certificate at auth/${login.mount} (role ${login.role})`
    case 'token':
      return `the token in ${login.where}`
  }
}

export const loginFix = (login: VaultLogin): string => {
  switch (login.kind) {
    case 'approle':
      return `vault write -f -field=secret_id auth/${login.mount}/role/ROLE/secret-id > FILE, then muster issuer set ISSUER --secret-id file:FILE`
    case 'certificate':
      return `vault read auth/${login.mount}/certs/${login.role}`
    case 'token':
      return 'vault token create -policy=POLICY -period=24h -orphan -field=token > FILE, then muster issuer set ISSUER --token file:FILE'
  }
}

const refusedLogin = (login: VaultLogin, why: string): VaultFault =>
  new VaultFault('login', `${named(login)} was refused: ${why}`, true)

export const faultOf = (login: VaultLogin, error: unknown): VaultFault => {
  const why = error instanceof Error ? error.message : 'unknown'
  const fault = new VaultFault(
    error instanceof IssuerFault ? 'broken' : 'login',
    `${named(login)} failed: ${why}`,
    true,
  )
  fault.cause = error
  return fault
}

export const secretsOf = (login: VaultLogin): readonly string[] => (login.kind === 'approle' ? [login.secretId] : [])

export const certificateLife = (login: VaultLogin): { readonly sinceMs: number; readonly lifeMs: number } | null => {
  if (login.kind !== 'certificate') return null
  const { validFromDate, validToDate } = new X509Certificate(login.cert)
  return { sinceMs: validFromDate.getTime(), lifeMs: validToDate.getTime() - validFromDate.getTime() }
}
