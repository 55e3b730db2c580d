// A policy, as vClusters and the maintenance mode of the domain have one.

import { Type } from 'typebox'
import { enforcementModes } from '#domain/fleet/policy.ts'

export const PolicyBody = Type.Object({
  enforcementMode: Type.Enum([...enforcementModes]),
  execWhitelist: Type.Array(Type.String()),
  shellWhitelist: Type.Array(Type.String()),
  regulated: Type.Boolean(),
})
