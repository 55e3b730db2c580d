// The content of the two statements that let a host act on a task: the task itself, signed by a task signer, and which task
// signers count, signed by the statement key (docs/decisions/tasks.md).

import { Type, type Static } from 'typebox'
import { recordOf } from '#platform/json-schema.ts'
import { closed, NodeIdText, orNull } from './shapes.ts'

/** The ceilings of both, as text. */
export const longestTaskEnvelope = 32_768
export const longestVerifiers = 16_384
/** Of the parameters of a task, as JSON. */
export const longestParameters = 16_384

/** Signers that are not retired, and statement keys that are in service. */
const mostVerifiers = 8
export const mostStatementKeys = 8
/** A task lives no longer than this, nor does a statement of verifiers. */
export const taskStatementLifeMs = 24 * 3_600_000

export const taskIdShape = '^task_[a-z2-7]{26}$'
/** Shipped types have any such name, types of a host's own begin with `x-`. */
export const taskTypeShape = '^[a-z][a-z0-9-]{0,31}$'

const domain = Type.String({ minLength: 1, maxLength: 256 })
const whole = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
/** The key id of a public key. */
export const KeyIdText = Type.String({ pattern: '^[0-9a-f]{40}$' })
/** Random, of the host. */
export const NonceText = Type.String({ pattern: '^[A-Za-z0-9_-]{16,128}$' })
/** SubjectPublicKeyInfo, DER, base64. */
const SpkiText = Type.String({ pattern: '^[A-Za-z0-9+/]{40,200}={0,2}$' })

/** One instruction to one node in one epoch (ruling 13). Every field is signed. */
export const TaskEnvelope = Type.Object(
  {
    domain,
    node: NodeIdText,
    epoch: whole,
    id: Type.String({ pattern: taskIdShape }),
    type: Type.String({ pattern: taskTypeShape }),
    parameters: recordOf(Type.String(), Type.Unknown(), { maxProperties: 64 }),
    issued_ms: whole,
    /** At most `taskStatementLifeMs` after. */
    expires_ms: whole,
    /** Of the signer. */
    key: KeyIdText,
    /** Of the envelopes for this node. It shows gaps and refuses nothing (ruling 25). */
    counter: whole,
  },
  closed,
)
export type TaskEnvelope = Static<typeof TaskEnvelope>

export const Verifiers = Type.Object(
  {
    domain,
    node: NodeIdText,
    epoch: whole,
    /** Of the row of signers; every change raises it. A host refuses a lower one than it has seen. */
    number: whole,
    verifiers: Type.Array(Type.Object({ key: KeyIdText, spki: SpkiText }, closed), { maxItems: mostVerifiers }),
    withdrawn: Type.Array(KeyIdText, { maxItems: mostVerifiers }),
    /** All that the plane has now. A host that has pinned the one that signed replaces its pinned keys by them. */
    statement_keys: Type.Array(SpkiText, { minItems: 1, maxItems: mostStatementKeys }),
    issued_ms: whole,
    /** At most `taskStatementLifeMs` after. */
    expires_ms: whole,
    /** Of the host that asked. With its own a statement proves the time (ruling 16). */
    nonce: orNull(NonceText),
  },
  closed,
)
export type Verifiers = Static<typeof Verifiers>
