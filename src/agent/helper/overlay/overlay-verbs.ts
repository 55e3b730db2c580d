// The verbs for the signed statement of an overlay, and what an agent shows of the definition of what it asks to have started. What
// of it is believed is decided by the helper alone (docs/decisions/overlays.md).

import { Type, type TSchema } from 'typebox'
import { longestOverlayStatement, type OverlayFault } from '#wire/core/overlay-statement.ts'
import { closed } from '#wire/core/shapes.ts'

/** With a service or a check: its definition, as the plane has signed its digest, and the folder that `{overlay}` stands for. */
export const shownDefinition = <T extends TSchema>(definition: T) =>
  Type.Object(
    {
      definition,
      // As a word of a command it is never an option, and it always ends like the folder of an agent.
      folder: Type.String({ pattern: '^/[^\\u0000-\\u001f]*/overlay/current$', maxLength: 1024 }),
    },
    closed,
  )

export const overlayVerbs = {
  /** For one statement. It is waited for five minutes, or until a later one was answered. */
  'overlay.nonce': {
    request: Type.Object({}, closed),
    answer: Type.Object({ nonce: Type.String() }),
  },
  /** From then on that one says what may be started, also after a restart. */
  'overlay.take': {
    request: Type.Object({ statement: Type.String({ maxLength: longestOverlayStatement }) }, closed),
    answer: Type.Object({ vcluster_revision: Type.Integer() }),
  },
} as const

/** `why` is a sentence without its full stop. */
export type OverlayRefusal = { readonly kind: 'overlay-refused'; readonly fault: OverlayFault; readonly why: string }

export const refuseOverlay = (fault: OverlayFault, why: string): OverlayRefusal => ({
  kind: 'overlay-refused',
  fault,
  why,
})
