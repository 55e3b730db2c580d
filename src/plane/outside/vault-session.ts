// A login at Vault, kept: it is renewed at half of its life without being asked; where Vault gives no more, AppRole and certificate log in anew, and a
// token is read again.

import { isEnding, isOver, isToBeRenewed, lastLife, leftMs, type LoginLife } from '#domain/issuers/login-life.ts'
import type { Clock } from '#platform/clock.ts'
import { doublingWaitMs, type Timers } from '#platform/timers.ts'
import {
  authOf,
  certificateLife,
  type Entered,
  faultOf,
  loggedIn,
  type LoginCondition,
  named,
  readToken,
  secretsOf,
  type VaultLogin,
} from './vault-login.ts'
import { type AskVault, VaultFault } from './vault-reply.ts'

export type VaultSession = {
  /** Logs in where there is no login. Rejects with a VaultFault: nothing has been asked of Vault then but that. */
  token(): Promise<string>
  /** Vault does not know this token (any more). */
  reject(token: string): void
  /** For how long this token has been in use. */
  ageMs(token: string): number
  condition(): LoginCondition
  /** What must be in no message. */
  secrets(): readonly string[]
  close(): void
}

type Held = LoginLife & { readonly token: string; readonly isRenewable: boolean; readonly first: LoginLife }

export type SessionParts = {
  readonly clock: Clock
  readonly timers: Timers
  readonly login: VaultLogin
  /** With this token, or without one. */
  readonly ask: AskVault
}

const lookEveryMs = 1000
const longestPauseMs = 60_000

export const openVaultSession = ({ clock, timers, login, ask }: SessionParts): VaultSession => {
  let held: Held | null = null
  let pending: Promise<Held> | null = null
  let trouble: { readonly sinceMs: number; readonly why: string; readonly failures: number } | null = null
  let notBeforeMs = 0

  const now = (): number => clock.monotonicMs()

  const attempt = (run: () => Promise<Held>): Promise<Held> => {
    pending ??= run()
      .then(
        (found) => {
          trouble = null
          held = found
          return found
        },
        (error: unknown) => {
          const fault = error instanceof VaultFault ? error : faultOf(login, error)
          const failures = (trouble?.failures ?? 0) + 1
          trouble = { sinceMs: trouble?.sinceMs ?? clock.nowMs(), why: fault.message, failures }
          // Vault locks who is refused too often.
          const isRefused = fault.code === 'login'
          notBeforeMs = now() + (isRefused ? doublingWaitMs(failures - 1, lookEveryMs, longestPauseMs) : lookEveryMs)
          throw fault
        },
      )
      .finally(() => {
        pending = null
      })
    return pending
  }

  const enter = async (): Promise<Held> => {
    const startedMs = now()
    return heldSince(startedMs, await loggedIn(login, ask))
  }

  const renew = async (before: Held): Promise<Held> => {
    if (login.kind === 'token' && readToken(login) !== before.token) return enter()
    if (!before.isRenewable) return login.kind === 'token' ? before : enter()
    const startedMs = now()
    const reply = await ask({ method: 'POST', path: 'auth/token/renew-self', json: {} }, before.token)
    if (reply.status !== 200) {
      if (login.kind !== 'token') return enter()
      throw new VaultFault('login', `${named(login)} cannot be renewed: ${reply.said}`, true)
    }
    const renewed = heldSince(startedMs, authOf(reply, before.token))
    const last = lastLife(before.first, renewed)
    if (last === null) return { ...renewed, first: before.first }
    const ending = { ...renewed, ...last, isRenewable: false, first: before.first }
    if (login.kind === 'token') return ending
    // Should there be no other login, this one is good for a little longer.
    held = ending
    return enter()
  }

  const look = (): void => {
    if (held === null || pending !== null || !isToBeRenewed(held, now()) || now() < notBeforeMs) return
    const before = held
    // A token that nobody can renew is read again, in case it has been replaced: sixty times in its life.
    if (login.kind === 'token' && !before.isRenewable)
      notBeforeMs = now() + Math.min(longestPauseMs, (before.lifeMs ?? 0) / 60)
    void attempt(() => renew(before)).catch(() => undefined)
  }
  const stop = timers.every(lookEveryMs, look)

  const usable = (): Held | null => (held === null || isOver(held, now()) ? null : held)

  const entering = (): Promise<Held> => {
    if (pending === null && trouble !== null && now() < notBeforeMs)
      return Promise.reject(new VaultFault('login', trouble.why, true))
    return attempt(enter)
  }

  return {
    token: async () => (usable() ?? (await entering())).token,
    reject: (token) => {
      if (held?.token === token) held = null
    },
    ageMs: (token) => (held?.token === token ? now() - held.sinceMs : Infinity),
    condition: () => conditionOf(login, usable(), trouble, clock),
    secrets: () => [...secretsOf(login), ...(held === null ? [] : [held.token])],
    close: () => {
      stop()
      held = null
    },
  }
}

const heldSince = (startedMs: number, { token, lifeMs, leftMs: left, isRenewable }: Entered): Held => {
  // Counted from before it was asked for: Vault counts from later.
  const life = { sinceMs: lifeMs === null || left === null ? startedMs : startedMs - (lifeMs - left), lifeMs }
  return { token, isRenewable, ...life, first: life }
}

const conditionOf = (
  login: VaultLogin,
  held: Held | null,
  trouble: { readonly sinceMs: number; readonly why: string } | null,
  clock: Clock,
): LoginCondition => {
  const certificate = certificateLife(login)
  if (certificate !== null && isEnding(certificate, clock.nowMs())) {
    const untilMs = certificate.sinceMs + certificate.lifeMs
    return { kind: 'ending', untilMs, why: `the certificate of ${named(login)} ends` }
  }
  if (held === null) return trouble === null ? { kind: 'none' } : { kind: 'failed', ...since(trouble) }
  const left = leftMs(held, clock.monotonicMs())
  if (left === null) return { kind: 'good', untilMs: null }
  const untilMs = clock.nowMs() + left
  if (!isEnding(held, clock.monotonicMs())) return { kind: 'good', untilMs }
  return {
    kind: 'ending',
    untilMs,
    why: trouble?.why ?? `${named(login)} cannot be renewed any more: put another one there`,
  }
}

const since = ({ sinceMs, why }: { readonly sinceMs: number; readonly why: string }) => ({ sinceMs, why })
