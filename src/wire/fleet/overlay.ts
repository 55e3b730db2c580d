// What an agent is told to run, and what it says became of it.

import { Type, type Static } from 'typebox'
import { enforcementModes } from '#domain/fleet/policy.ts'

/** What a plane offers in its hello: it takes `overlay_state` and `capabilities`. */
export const overlayCapability = 'overlay'

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

/** Agent: how what it was told to run stands. Sent when it changes, and once after every hello. */
export const OverlayState = {
  config_revision: Type.Integer({ minimum: 0 }),
  applied: Type.Boolean(),
  detail: Type.Union([Type.String({ maxLength: 256 }), Type.Null()]),
  services: Type.Array(
    Type.Object(
      {
        name: Type.String({ maxLength: 63 }),
        state: Type.Union([Type.Literal('running'), Type.Literal('starting'), Type.Literal('failed')]),
        restarts: Type.Integer({ minimum: 0 }),
      },
      { additionalProperties: false },
    ),
    { maxItems: 33 },
  ),
  /** What is no longer what was applied, in words: `file etc/app.conf: changed`, `service worker: not running`. */
  drift: Type.Array(Type.String({ maxLength: 300 }), { maxItems: 16 }),
}

export const OverlayStateBody = Type.Object(OverlayState, { additionalProperties: false })
export type OverlayStateBody = Static<typeof OverlayStateBody>

/** Agent: what the machine can do. Also in maintenance mode, and then without a vCluster. */
export const CapabilityReport = {
  vcluster: Type.Union([Type.String({ maxLength: 63 }), Type.Null()]),
  cpu_cores: Type.Integer({ minimum: 0, maximum: 1_000_000 }),
  memory_bytes: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
  arch: Type.String({ maxLength: 32 }),
  kernel: Type.String({ maxLength: 128 }),
  /** PCI display and processing accelerators: vendor:device and how many. */
  accelerators: Type.Array(
    Type.Object(
      { device: Type.String({ maxLength: 32 }), count: Type.Integer({ minimum: 1, maximum: 4096 }) },
      { additionalProperties: false },
    ),
    { maxItems: 32 },
  ),
  services: Type.Union([Type.Literal('systemd'), Type.Literal('supervised')]),
  wireguard: Type.Union([Type.Literal('kernel'), Type.Literal('userspace'), Type.Literal('none')]),
}
export const CapabilityReportBody = Type.Object(CapabilityReport, { additionalProperties: false })
export type CapabilityReportBody = Static<typeof CapabilityReportBody>
