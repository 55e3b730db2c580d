// Statements of the plane: short, signed, and verified by a receiver that pinned the key. They are challenges (which also carry
// the time to a machine whose clock may be wrong by years), counters, sightings of the journal, claims to other domains, tasks, the
// signers of tasks, and what an overlay names.
//
//     <kind>1.<base64url of canonical JSON>.<base64url of the signature over everything before the last dot>

import { mostHeads } from '#domain/continuity/sighting.ts'
import { Type, type Static, type TSchema } from 'typebox'
import { matchesSchema } from '#platform/json-schema.ts'
import { Claims, longestClaims } from './claims.ts'
import { longestOverlayStatement, OverlayStatement } from './overlay-statement.ts'
import { closed } from './shapes.ts'
import { unfitText } from './strict-json.ts'
import { longestTaskEnvelope, longestVerifiers, TaskEnvelope, Verifiers } from './task-statements.ts'

const short = Type.String({ maxLength: 256 })
const whole = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

/** A challenge also states the time. It is bound to the nonce of the caller, so that it cannot be replayed to another. */
export const Challenge = Type.Object(
  { domain: short, node: Type.Union([short, Type.Null()]), nonce: short, salt: short, time_ms: whole },
  closed,
)
export type Challenge = Static<typeof Challenge>

/** Returned by every enrollment, renewal and recovery; the next one has to present it (ruling 6). */
const Counter = Type.Object({ domain: short, node: short, epoch: whole, counter: whole }, closed)
export type Counter = Static<typeof Counter>

/** How far the journal reached, for nodes to remember and to show again (domain/continuity/sighting.ts). */
const Sighting = Type.Object(
  {
    domain: short,
    lineage: whole,
    heads: Type.Array(
      Type.Object(
        {
          chain: Type.String({ minLength: 1, maxLength: 64 }),
          sequence: whole,
          hash: Type.String({ pattern: '^[0-9a-f]{64}$' }),
        },
        closed,
      ),
      { minItems: 1, maxItems: mostHeads },
    ),
  },
  closed,
)

const shapes = {
  challenge: Challenge,
  counter: Counter,
  sighting: Sighting,
  claims: Claims,
  task: TaskEnvelope,
  verifiers: Verifiers,
  overlay: OverlayStatement,
} as const satisfies Record<string, TSchema>
export type StatementKind = keyof typeof shapes
export type StatementOf<K extends StatementKind> = Static<(typeof shapes)[K]>

export const longestStatement = 2048
export const longestSighting = 20_480
const longest = {
  challenge: longestStatement,
  counter: longestStatement,
  sighting: longestSighting,
  claims: longestClaims,
  task: longestTaskEnvelope,
  verifiers: longestVerifiers,
  overlay: longestOverlayStatement,
} as const

/** `sign` gets the bytes that `parseStatement` hands out as `signed`. */
export const formatStatement = <K extends StatementKind, B extends Uint8Array | Promise<Uint8Array>>(
  kind: K,
  value: StatementOf<K>,
  sign: (bytes: Uint8Array) => B,
): Formatted<B> => {
  const head = `${kind}1.${Buffer.from(JSON.stringify(value)).toString('base64url')}`
  const whole = (signature: Uint8Array): string => `${head}.${Buffer.from(signature).toString('base64url')}`
  const signed: Uint8Array | Promise<Uint8Array> = sign(Buffer.from(head))
  return (signed instanceof Promise ? signed.then(whole) : whole(signed)) as Formatted<B>
}

/** There at once where the key signs at once. */
type Formatted<B> = B extends Promise<unknown> ? Promise<string> : string

export type ParsedStatement<K extends StatementKind> = {
  readonly value: StatementOf<K>
  readonly signed: Uint8Array
  readonly signature: Uint8Array
}

/** Null when it is not a statement of this kind. The caller checks the signature, because it knows the key. */
export const parseStatement = <K extends StatementKind>(kind: K, text: string): ParsedStatement<K> | null => {
  if (text.length > longest[kind]) return null
  const [, head, name, body, signature] = statementShape.exec(text) ?? []
  if (head === undefined || body === undefined || signature === undefined || name !== `${kind}1`) return null
  try {
    const value: unknown = JSON.parse(Buffer.from(body, 'base64url').toString('utf8'))
    if (!matchesSchema(shapes[kind], value) || unfitText(value) !== null) return null
    return {
      value,
      signed: Buffer.from(head),
      signature: Buffer.from(signature, 'base64url'),
    }
  } catch {
    return null
  }
}

const statementShape = /^(([a-z]+1)\.([A-Za-z0-9_-]+))\.([A-Za-z0-9_-]+)$/

/**
 * What a recovery key signs, and at `prove` the key of a certificate: for which purpose, on which challenge, over which request and counter. `node` is `-` at an
 * enrollment whose node has no name yet; `counter` is `-` where there is none. At `replace` the key that is replaced signs, with the
 * hash of the one that takes its place instead of a counter.
 */
export const recoveryProofBytes = (proof: {
  readonly purpose: 'register' | 'replace' | 'recover' | 'rehearse' | 'prove'
  readonly node: string
  readonly challenge: string
  /** SHA-256 of the certificate request as sent, hex; `-` at a rehearsal. */
  readonly csrHash: string
  readonly counter: string
}): Uint8Array =>
  Buffer.from(['muster-recovery1', proof.purpose, proof.node, proof.challenge, proof.csrHash, proof.counter].join('\n'))
