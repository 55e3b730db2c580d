// The content of the statement that lets a host start what an overlay names: which services and which checks the plane wants on one
// node, each by the digest of its definition (docs/decisions/overlays.md).

import { Type, type Static } from 'typebox'
import { closed, NodeIdText, orNull } from './shapes.ts'
import { NonceText } from './task-statements.ts'

/** As text. Full lists with the longest names have less. */
export const longestOverlayStatement = 16_384

const whole = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

/** SHA-256 of the text of a definition (wire/fleet/overlay-definition.ts), hex. */
const Signed = Type.Object(
  {
    name: Type.String({ pattern: '^[a-z0-9][a-z0-9-]{0,62}$' }),
    digest: Type.String({ pattern: '^[0-9a-f]{64}$' }),
  },
  closed,
)

export const OverlayStatement = Type.Object(
  {
    domain: Type.String({ minLength: 1, maxLength: 256 }),
    node: NodeIdText,
    epoch: whole,
    /** Null: the node is in none. */
    vcluster: orNull(Type.String({ minLength: 1, maxLength: 256 })),
    /** Of the vCluster; 0 where the node is in none. For people: what is newer is said by the nonce. */
    vcluster_revision: whole,
    /** All that may be started. */
    services: Type.Array(Signed, { maxItems: 33 }),
    checks: Type.Array(Signed, { maxItems: 16 }),
    /** For people. Nothing is judged by it. */
    issued_ms: whole,
    /** Of the host that asked: without its own it takes none. */
    nonce: NonceText,
  },
  closed,
)
export type OverlayStatement = Static<typeof OverlayStatement>

/** Why the helper of a host does not start what an overlay names. Never renamed and never reused. */
const overlayFaults = [
  /** The host asks for a statement and has none that counts. */
  'STATEMENT_MISSING',
  /** It is no statement of an overlay, was changed, or is signed by a key that the host has not pinned. */
  'STATEMENT_NOT_SIGNED',
  /** The statement is of another domain or node. */
  'STATEMENT_OF_ANOTHER',
  /** The statement is of an epoch that is over. */
  'STATEMENT_OLDER',
  /** It does not carry a nonce that this helper waits for: an earlier one, or one that was made for another helper. */
  'STATEMENT_REPLAYED',
  /** The statement does not name it, or names another definition. */
  'NOT_IN_STATEMENT',
  'KEYS_UNREADABLE',
  /** It could not be made durable, as on a full disk. */
  'NOT_KEPT',
] as const
export type OverlayFault = (typeof overlayFaults)[number]

/** The fault that a message of the helper begins with; null: it says something else. A newer helper may have others. */
export const overlayFaultIn = (message: string): OverlayFault | null =>
  overlayFaults.find((fault) => message.startsWith(`${fault}: `)) ?? null
