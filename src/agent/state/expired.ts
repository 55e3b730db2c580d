import type { AgentParts } from '#agent/core/agent-deps.ts'
import type { Identity } from './credentials.ts'
import { observedTrouble } from '#agent/core/trouble.ts'
import type { Trouble } from '#agent/core/trouble.ts'

/** Said by this machine, by its own clock; never by the plane. */
export const expiredCode = 'cert_expired'

/** By the clock the agent believes. */
export const isExpired = ({ clock }: Pick<AgentParts, 'clock'>, { current }: Identity): boolean =>
  clock.nowMs() >= current.notAfterMs

export const expired = ({ clock }: Pick<AgentParts, 'clock'>, { current }: Identity): Trouble =>
  observedTrouble(expiredCode, `The certificate ${current.serial} of this node has expired.`, {
    kind: 'own-certificate',
    serial: current.serial,
    notAfterMs: current.notAfterMs,
    nowMs: clock.nowMs(),
  })
