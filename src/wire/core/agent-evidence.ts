// The evidence that distinguishes an agent's process and machine from another with the same identity. Sent in the body of
// recoveries, and as a header with every other call.

import { Type, type Static } from 'typebox'
import { redactSecrets } from '#platform/secret-shapes.ts'
import { matchesSchema } from '#platform/json-schema.ts'
import { closed, text } from './shapes.ts'
import { unfitText } from './strict-json.ts'

export const HardwareIdentityBody = Type.Object(
  {
    macs: Type.Array(Type.String({ pattern: '^[0-9a-f]{2}(:[0-9a-f]{2}){5}$' }), { maxItems: 64 }),
    bmc_serial: Type.Union([text(128), Type.Null()]),
  },
  closed,
)

export const AgentEvidence = Type.Object(
  {
    /** Random, made at the start of the process and kept in its memory only: a copied folder does not have it. */
    instance: Type.String({ pattern: '^[A-Za-z0-9_-]{22}$' }),
    hardware: HardwareIdentityBody,
    /** /etc/machine-id, hashed with the domain; null where there is none. */
    machine: Type.Union([Type.String({ pattern: '^[0-9a-f]{64}$' }), Type.Null()]),
    agent_version: Type.String({ minLength: 1, maxLength: 64 }),
  },
  { additionalProperties: false },
)
export type AgentEvidence = Static<typeof AgentEvidence>

export const evidenceHeader = 'muster-evidence'

export const formatEvidence = (evidence: AgentEvidence): string =>
  Buffer.from(JSON.stringify(evidence)).toString('base64url')

const longestHeader = 4096

/** Null: not sent, or not evidence. */
export const parseEvidence = (header: string | undefined): AgentEvidence | null => {
  if (header === undefined || header.length > longestHeader) return null
  try {
    const value: unknown = JSON.parse(Buffer.from(header, 'base64url').toString('utf8'))
    return matchesSchema(AgentEvidence, value) && unfitText(value) === null ? withoutSecrets(value) : null
  } catch {
    return null
  }
}

/** Evidence is stored and shown to operators: a secret that was put into a serial number by mistake must not be. */
const withoutSecrets = ({ hardware, ...evidence }: AgentEvidence): AgentEvidence => ({
  ...evidence,
  hardware: { ...hardware, bmc_serial: hardware.bmc_serial === null ? null : redactSecrets(hardware.bmc_serial) },
  agent_version: redactSecrets(evidence.agent_version),
})

export const evidenceIn = (headers: Readonly<Record<string, string | string[] | undefined>>): AgentEvidence | null => {
  const sent = headers[evidenceHeader]
  return parseEvidence(typeof sent === 'string' ? sent : undefined)
}
