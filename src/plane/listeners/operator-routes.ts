// Every route of the operator plane. Viewers read; operators look after nodes and tokens; platform-admins set policy.

import { operatorAlertRoutes } from './operator-alert-routes.ts'
import { operatorAllocationRoutes } from './operator-allocation-routes.ts'
import { operatorCaRoutes, type CaRoutesDeps } from './operator-ca-routes.ts'
import { operatorHardwareRoutes } from './operator-hardware-routes.ts'
import { operatorHealthRoutes, type HealthDeps } from './operator-health-routes.ts'
import { operatorIssuanceRoutes } from './operator-issuance-routes.ts'
import { operatorJournalRoutes, type JournalRoutesDeps } from './operator-journal-routes.ts'
import { operatorKeyRoutes, type KeyRoutesDeps } from './operator-key-routes.ts'
import { operatorNodeActions, type NodeActionDeps } from './operator-node-actions.ts'
import { operatorNodeRoutes } from './operator-node-routes.ts'
import { operatorPeerDomainRoutes, type PeerDomainRoutesDeps } from './operator-peer-domain-routes.ts'
import { operatorPlanRoutes, type PlanRoutesDeps } from './operator-plan-routes.ts'
import { operatorPolicyRoutes } from './operator-policy-routes.ts'
import { operatorReceiptRoutes, type ReceiptRoutesDeps } from './operator-receipt-routes.ts'
import { operatorSchedulingRoutes } from './operator-scheduling-routes.ts'
import { operatorStatusRoutes, type StatusRoutesDeps } from './operator-status-routes.ts'
import { operatorStoreRoutes } from './operator-store-routes.ts'
import { operatorTokenRoutes } from './operator-token-routes.ts'
import { operatorVClusterRoutes } from './operator-vcluster-routes.ts'
import type { Route } from './route.ts'
import type { ConfirmStoreDeps } from '#plane/flows/confirm-store.ts'
import type { ProfileDeps } from '#plane/flows/change-profiles.ts'
import type { CreateTokenDeps } from '#plane/flows/create-token.ts'

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
