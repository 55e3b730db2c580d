// What tasks of the shipped types take. The plane checks it before it queues one; the host checks again, against its own file.

import { Type, type TSchema } from 'typebox'
import { closed, oneOf } from '#wire/core/shapes.ts'

/** Of something that the file of the host lists under a name. */
const ListedName = Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$' })

export const taskParameters = {
  /** `name`: of an executable that the host lists, never a command line. */
  run: Type.Object(
    { name: ListedName, arguments: Type.Optional(Type.Array(Type.String({ maxLength: 4096 }), { maxItems: 256 })) },
    closed,
  ),
  service: Type.Object({ name: ListedName, action: oneOf(['start', 'stop', 'restart', 'reload'] as const) }, closed),
  /** `sha256`: of the bytes, which the plane has. `path`: below a directory that the host lists. */
  'fetch-file': Type.Object(
    {
      sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
      path: Type.String({ pattern: '^/[^\\u0000]+$', maxLength: 1024 }),
    },
    closed,
  ),
  reboot: Type.Object({}, closed),
  'rotate-recovery': Type.Object({}, closed),
  'collect-diagnostics': Type.Object({}, closed),
  cleanup: Type.Object({ name: ListedName }, closed),
} as const satisfies Record<string, TSchema>
