// Every route of the operator plane. Viewers read; operators look after nodes and tokens; platform-admins set policy.

import { operatorAlertRoutes } from '#plane/alerts/alert-routes.ts'
import { operatorAllocationRoutes } from '#plane/fleet/allocation-routes.ts'
import { operatorCaRoutes, type CaRoutesDeps } from '#plane/ca/ca-routes.ts'
import { operatorHardwareRoutes } from '#plane/fleet/hardware-routes.ts'
import { operatorHealthRoutes, type HealthDeps } from './health-routes.ts'
import { operatorIssuanceRoutes } from '#plane/identity/issuance-routes.ts'
import { operatorJournalRoutes, type JournalRoutesDeps } from '#plane/journal/journal-routes.ts'
import { operatorKeyRoutes, type KeyRoutesDeps } from '#plane/operators/key-routes.ts'
import { operatorNodeActions, type NodeActionDeps } from '#plane/node/operator-node-actions.ts'
import { operatorNodeRoutes } from '#plane/node/operator-node-routes.ts'
import { operatorPeerDomainRoutes, type PeerDomainRoutesDeps } from '#plane/federation/peer-domain-routes.ts'
import { operatorPlanRoutes, type PlanRoutesDeps } from '#plane/plans/plan-routes.ts'
import { operatorPolicyRoutes } from '#plane/settings/policy-routes.ts'
import { operatorReceiptRoutes, type ReceiptRoutesDeps } from '#plane/revocation/receipt-routes.ts'
import { operatorSchedulingRoutes } from '#plane/fleet/scheduling-routes.ts'
import { operatorStatusRoutes, type StatusRoutesDeps } from '#plane/ca/certificate-status-routes.ts'
import { operatorStoreRoutes, type ConfirmStoreDeps } from '#plane/continuity/store-routes.ts'
import { operatorTokenRoutes } from '#plane/enrollment/token-routes.ts'
import { operatorVClusterRoutes } from '#plane/fleet/vcluster-routes.ts'
import type { Route } from '#plane/http/route.ts'
import type { ProfileDeps } from '#plane/settings/change-profiles.ts'
import type { CreateTokenDeps } from '#plane/enrollment/change-tokens.ts'

export type OperatorRoutesDeps = NodeActionDeps &
  PeerDomainRoutesDeps &
  PlanRoutesDeps &
  ReceiptRoutesDeps &
  CreateTokenDeps &
  ProfileDeps &
  KeyRoutesDeps &
  JournalRoutesDeps &
  CaRoutesDeps &
  StatusRoutesDeps &
  ConfirmStoreDeps &
  HealthDeps

export const operatorRoutes = (deps: OperatorRoutesDeps): readonly Route[] => [
  ...operatorNodeRoutes(deps),
  ...operatorNodeActions(deps),
  ...operatorReceiptRoutes(deps),
  ...operatorSchedulingRoutes(deps),
  ...operatorAllocationRoutes(deps),
  ...operatorVClusterRoutes(deps),
  ...operatorTokenRoutes(deps),
  ...operatorPolicyRoutes(deps),
  ...operatorCaRoutes(deps),
  ...operatorStatusRoutes(deps),
  ...operatorIssuanceRoutes(deps),
  ...operatorPlanRoutes(deps),
  ...operatorHardwareRoutes(deps),
  ...operatorPeerDomainRoutes(deps),
  ...operatorAlertRoutes(deps),
  ...operatorJournalRoutes(deps),
  ...operatorKeyRoutes(deps),
  ...operatorStoreRoutes(deps),
  ...operatorHealthRoutes(deps),
]
