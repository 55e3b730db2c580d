// The overlay that an agent has to run. Its report on it: wire/node/node-runs.ts.

import { Type, type Static } from 'typebox'
import { enforcementModes } from '#domain/fleet/policy.ts'

const ServiceName = Type.String({ pattern: '^[a-z0-9][a-z0-9-]{0,62}$' })

export const ServiceBody = Type.Object({
  name: ServiceName,
  command: Type.Array(Type.String({ minLength: 1, maxLength: 1024 }), { minItems: 1, maxItems: 64 }),
})

export const OverlayFileBody = Type.Object({
  /** Relative, segments of letters, digits, dots, dashes and underscores, none of them `.` or `..`. */
  path: Type.String({ pattern: '^(?!.*(^|/)\\.{1,2}(/|$))[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$', maxLength: 255 }),
  mode: Type.Integer({ minimum: 0o400, maximum: 0o777 }),
  content: Type.String({ maxLength: 40_000 }),
})

export const OverlayBody = Type.Object({
  files: Type.Array(OverlayFileBody, { maxItems: 128 }),
  services: Type.Array(ServiceBody, { maxItems: 32 }),
})

/** Part of a configuration: what the node's vCluster asks for, or in maintenance mode the domain. Left out by older planes. */
export const ConfigOverlay = Type.Object({
  /** Of the vCluster; 0 in maintenance mode. */
  vcluster_revision: Type.Integer({ minimum: 0 }),
  policy: Type.Object({
    enforcement_mode: Type.Enum([...enforcementModes]),
    exec_whitelist: Type.Array(Type.String()),
    shell_whitelist: Type.Array(Type.String()),
    regulated: Type.Boolean(),
  }),
  files: OverlayBody.properties.files,
  /** Those of the vCluster, and time sync where the domain names it. */
  services: Type.Array(ServiceBody, { maxItems: 33 }),
  /** False in maintenance mode. */
  detect_drift: Type.Boolean(),
})
export type ConfigOverlay = Static<typeof ConfigOverlay>
