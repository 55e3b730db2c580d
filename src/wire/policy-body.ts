// A policy, as vClusters and the maintenance mode of the domain have one.

import { Type, type TEnum } from 'typebox'
import { enforcementModes, type Policy } from '#domain/policy.ts'

export const PolicyBody = Type.Object({
  enforcementMode: Type.Enum([...enforcementModes]) as unknown as TEnum<Policy['enforcementMode'][]>,
  execWhitelist: Type.Array(Type.String()),
  shellWhitelist: Type.Array(Type.String()),
  regulated: Type.Boolean(),
})
