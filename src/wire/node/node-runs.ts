// What a node was told to run, how that stands, and what its machine can do: parts of `GET /v1/nodes/{id}`.

import { Type } from 'typebox'
import { CapabilityReport, OverlayState } from '#wire/fleet/overlay.ts'
import { orNull } from '#wire/core/shapes.ts'

/** As its agent last said; null: never. Answers may grow, so these are open where the frames are closed. */
export const NodeRuns = {
  /** Of the vCluster it is in; null in maintenance mode. */
  vcluster_revision: orNull(Type.Integer()),
  overlay: orNull(Type.Object(OverlayState)),
  capabilities: orNull(Type.Object(CapabilityReport)),
}
