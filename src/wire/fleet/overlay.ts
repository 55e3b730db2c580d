// The overlay that an agent has to run. Its report on it: wire/node/node-runs.ts.

import { Type, type Static } from 'typebox'
import { recordOf } from '#platform/json-schema.ts'
import { restartPolicies } from '#domain/fleet/overlay.ts'
import { enforcementModes } from '#domain/fleet/policy.ts'
import { orNull } from '#wire/core/shapes.ts'

/** What an agent offers in its hello: it runs services under terms, and makes health checks. Others are sent neither. */
export const termsCapability = 'service_terms'
export const checksCapability = 'health_checks'

const Name = Type.String({ pattern: '^[a-z0-9][a-z0-9-]{0,62}$' })
const Command = Type.Array(Type.String({ minLength: 1, maxLength: 1024 }), { minItems: 1, maxItems: 64 })

export const ServiceBody = Type.Object({ name: Name, command: Command })

export const OverlayFileBody = Type.Object({
  /** Relative, segments of letters, digits, dots, dashes and underscores, none of them `.` or `..`. */
  path: Type.String({ pattern: '^(?!.*(^|/)\\.{1,2}(/|$))[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$', maxLength: 255 }),
  mode: Type.Integer({ minimum: 0o400, maximum: 0o777 }),
  content: Type.String({ maxLength: 40_000 }),
})

/** Root is never one of them. */
export const UserName = Type.String({ pattern: '^(?!root$)[a-z_][a-z0-9_-]{0,31}$' })
export const Environment = recordOf(
  // Those of Muster's own are set by the agent.
  Type.String({ pattern: '^(?!MUSTER_)[A-Za-z_][A-Za-z0-9_]{0,63}$' }),
  Type.String({ maxLength: 1024, pattern: '^[^\\u0000]*$' }),
  { maxProperties: 32, additionalProperties: false },
)
export const WorkingDirectory = Type.String({ pattern: '^(/|\\{overlay\\})[A-Za-z0-9._@+/-]*$', maxLength: 255 })
export const Restart = Type.Enum([...restartPolicies])
export const Limits = {
  memoryBytes: Type.Integer({ minimum: 2 ** 20, maximum: Number.MAX_SAFE_INTEGER }),
  cpus: Type.Number({ minimum: 0.01, maximum: 4096 }),
  openFiles: Type.Integer({ minimum: 16, maximum: 2 ** 30 }),
}

export const ConfigService = Type.Object({
  ...ServiceBody.properties,
  /** Left out where the service runs as usual. */
  terms: Type.Optional(
    Type.Object({
      user: orNull(UserName),
      environment: Environment,
      working_directory: orNull(WorkingDirectory),
      restart: Restart,
      memory_bytes: orNull(Limits.memoryBytes),
      cpus: orNull(Limits.cpus),
      open_files: orNull(Limits.openFiles),
    }),
  ),
})
export type ConfigService = Static<typeof ConfigService>

const ConfigCheck = Type.Object({
  name: Name,
  command: Command,
  interval_ms: Type.Integer({ minimum: 1000, maximum: 86_400_000 }),
  timeout_ms: Type.Integer({ minimum: 100, maximum: 86_400_000 }),
})
export type ConfigCheck = Static<typeof ConfigCheck>

/** A check as operators write it. */
export const CheckBody = Type.Object({
  name: Name,
  command: Command,
  intervalMs: ConfigCheck.properties.interval_ms,
  timeoutMs: ConfigCheck.properties.timeout_ms,
})

export const mostServices = 32
export const mostChecks = 16

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
  files: Type.Array(OverlayFileBody, { maxItems: 128 }),
  /** Those of the vCluster, and time sync where the domain names it. */
  services: Type.Array(ConfigService, { maxItems: mostServices + 1 }),
  /** Left out where there are none. */
  checks: Type.Optional(Type.Array(ConfigCheck, { maxItems: mostChecks })),
  /** False in maintenance mode. */
  detect_drift: Type.Boolean(),
})
export type ConfigOverlay = Static<typeof ConfigOverlay>
