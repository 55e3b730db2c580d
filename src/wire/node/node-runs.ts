// The reports of an agent on its overlay and on the capabilities of its machine, and how `GET /v1/nodes/{id}` shows them.

import { Type, type Static } from 'typebox'
import { orNull } from '#wire/core/shapes.ts'

/** What a plane offers in its hello: it takes `overlay_state` and `capabilities`. */
export const overlayCapability = 'overlay'

/** Agent: the state of its overlay. Sent when it changes, and once after every hello. */
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

/** As its agent last said; null: never. Answers may grow, so these are open where the frames are closed. */
export const NodeRuns = {
  /** Of the vCluster it is in; null in maintenance mode. */
  vcluster_revision: orNull(Type.Integer()),
  overlay: orNull(Type.Object(OverlayState)),
  capabilities: orNull(Type.Object(CapabilityReport)),
}
