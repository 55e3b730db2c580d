import type { AgentParts } from '../agent-deps.ts'
import type { Identity } from '../identity/credentials.ts'
import { observedTrouble } from '../observed-trouble.ts'
import type { Trouble } from '../trouble.ts'

/** By the clock the agent believes. */
export const isExpired = ({ clock }: Pick<AgentParts, 'clock'>, { current }: Identity): boolean =>
  clock.nowMs() >= current.notAfterMs

export const expired = ({ clock }: Pick<AgentParts, 'clock'>, { current }: Identity): Trouble =>
  observedTrouble('cert_expired', `The certificate ${current.serial} of this node has expired.`, {
    kind: 'own-certificate',
    serial: current.serial,
    notAfterMs: current.notAfterMs,
    nowMs: clock.nowMs(),
  })
