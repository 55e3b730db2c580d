// What a machine may ask that has lost its identity, or rehearses how it would get it back.

import type { ChallengeDeps } from '#plane/flows/issue-challenge.ts'
import { challengeRoute } from './challenge-route.ts'
import type { Route } from './route.ts'

export type RecoveryRouteDeps = ChallengeDeps

export const recoveryRoutes = (deps: RecoveryRouteDeps): readonly Route[] => [challengeRoute(deps)]
