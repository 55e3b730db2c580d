// The reports of an agent on its overlay and on the capabilities of its machine, and how `GET /v1/nodes/{id}` shows them.

import { Type, type Static } from 'typebox'
import { orNull } from '#wire/core/shapes.ts'

/** What a plane offers in its hello: it takes `overlay_state` and `capabilities`. */
export const overlayCapability = 'overlay'
/** What a plane offers in its hello: it also takes why a service failed, the results of checks, and services run by a helper. */
export const overlayDetailsCapability = 'overlay_details'

/** Agent: the state of its overlay. Sent when it changes, and once after every hello. */
export const OverlayState = {
  config_revision: Type.Integer({ minimum: 0 }),
  applied: Type.Boolean(),
  detail: Type.Union([Type.String({ maxLength: 256 }), Type.Null()]),
  services: Type.Array(
    Type.Object(
      {
        name: Type.String({ maxLength: 63 }),
        /** `ended`: as its restart policy lets it. */
        state: Type.Enum(['running', 'starting', 'failed', 'ended']),
        restarts: Type.Integer({ minimum: 0 }),
        /** Why it does not run. This and the next two are left out where there is nothing to say. */
        error: Type.Optional(Type.String({ maxLength: 256 })),
        /** The last lines it wrote, the newest last, without what looks like a secret. */
        output: Type.Optional(Type.Array(Type.String({ maxLength: 200 }), { maxItems: 5 })),
        /** What of its terms its runner on this machine cannot set. */
        unapplied: Type.Optional(Type.Array(Type.String({ maxLength: 64 }), { maxItems: 8 })),
      },
      { additionalProperties: false },
    ),
    { maxItems: 33 },
  ),
  /** What is no longer what was applied, in words: `file etc/app.conf: changed`, `service worker: not running`. */
  drift: Type.Array(Type.String({ maxLength: 300 }), { maxItems: 16 }),
  /** Left out where the vCluster lists none. */
  checks: Type.Optional(
    Type.Array(
      Type.Object(
        {
          name: Type.String({ maxLength: 63 }),
          /** `not_run`: not yet, or it cannot be made here; `line` says why. */
          state: Type.Enum(['passed', 'failed', 'not_run']),
          line: Type.String({ maxLength: 200 }),
          /** Since when it has had this state. */
          since: Type.String({ maxLength: 32 }),
        },
        { additionalProperties: false },
      ),
      { maxItems: 16 },
    ),
  ),
}

export const OverlayStateBody = Type.Object(OverlayState, { additionalProperties: false })
export type OverlayStateBody = Static<typeof OverlayStateBody>

/** For a plane that does not offer `overlay_details`: its frames are closed. */
export const overlayStateWithoutDetails = ({
  checks: _later,
  services,
  ...state
}: OverlayStateBody): OverlayStateBody => ({
  ...state,
  services: services.map(({ name, state: how, restarts }) => ({
    name,
    state: how === 'ended' ? 'running' : how,
    restarts,
  })),
})

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
  /** Who runs them: the helper, each as a user that the host lists; systemd; or the agent itself, as its own user. */
  services: Type.Enum(['helper', 'systemd', 'supervised']),
  wireguard: Type.Union([Type.Literal('kernel'), Type.Literal('userspace'), Type.Literal('none')]),
}
export const CapabilityReportBody = Type.Object(CapabilityReport, { additionalProperties: false })
export type CapabilityReportBody = Static<typeof CapabilityReportBody>

/** For a plane that does not offer `overlay_details`. */
export const capabilitiesWithoutDetails = (body: CapabilityReportBody): CapabilityReportBody =>
  body.services === 'helper' ? { ...body, services: 'supervised' } : body

/** As its agent last said; null: never. Answers may grow, so these are open where the frames are closed. */
export const NodeRuns = {
  /** Of the vCluster it is in; null in maintenance mode. */
  vcluster_revision: orNull(Type.Integer()),
  overlay: orNull(Type.Object(OverlayState)),
  /** Of its vCluster, and not in what its agent says: not applied yet, or an agent of 0.3 was not sent it. Left out by planes of 0.3. */
  not_reported: Type.Optional(Type.Array(Type.String())),
  capabilities: orNull(Type.Object(CapabilityReport)),
}
