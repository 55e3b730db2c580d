// What nodes may ask of the plane. Enrollment, what precedes it, and the bundle are the only routes without a
// client certificate; claims are signed by the domain that makes them.

import { bundleRoutes, type BundleRouteDeps } from '#plane/ca/ca-routes.ts'
import { enrollRoutes, type EnrollRouteDeps } from '#plane/enrollment/enroll-routes.ts'
import { claimRoutes } from '#plane/federation/peer-domain-routes.ts'
import type { Route } from '#plane/http/route.ts'
import { challengeRoutes, type ChallengeRouteDeps } from '#plane/identity/challenge-route.ts'
import { identityRoutes, type IdentityRouteDeps } from '#plane/identity/identity-routes.ts'

export type NodeRouteDeps = EnrollRouteDeps & IdentityRouteDeps & ChallengeRouteDeps & BundleRouteDeps

export const nodeRoutes = (deps: NodeRouteDeps): readonly Route[] => [
  ...enrollRoutes(deps),
  ...challengeRoutes(deps),
  ...identityRoutes(deps),
  ...claimRoutes(deps),
  ...bundleRoutes(deps),
]
