// Every route of the operator listener. Viewers read; operators look after nodes and tokens; platform-admins set policy.

import { operatorAlertRoutes } from '#plane/alerts/alert-routes.ts'
import { operatorAllocationRoutes } from '#plane/fleet/allocation-routes.ts'
import { operatorCaRoutes } from '#plane/ca/ca-routes.ts'
import { operatorHardwareRoutes } from '#plane/fleet/hardware-routes.ts'
import { operatorHealthRoutes, type HealthSources } from './health-routes.ts'
import { operatorIssuanceRoutes } from '#plane/identity/issuance-routes.ts'
import { operatorIssuerRoutes, type IssuerRouteParts } from '#plane/issuers/issuer-routes.ts'
import { operatorMigrationRoutes } from '#plane/issuers/migration-routes.ts'
import type { Issuance } from '#plane/issuers/open-issuance.ts'
import { operatorJournalRoutes } from '#plane/journal/journal-routes.ts'
import { operatorKeyRoutes } from '#plane/operators/key-routes.ts'
import { operatorNodeActions } from '#plane/node/operator-node-actions.ts'
import { operatorNodeRoutes } from '#plane/node/operator-node-routes.ts'
import { operatorScrapeRoutes } from '#plane/node/scrape-routes.ts'
import { operatorPeerDomainRoutes } from '#plane/federation/peer-domain-routes.ts'
import { operatorDocumentRoutes } from '#plane/plans/document-routes.ts'
import { operatorPlanRoutes } from '#plane/plans/plan-routes.ts'
import { operatorNameRoutes } from '#plane/settings/name-routes.ts'
import type { PlaneNames } from '#plane/settings/plane-names.ts'
import { operatorPolicyRoutes } from '#plane/settings/policy-routes.ts'
import { operatorProgramRoutes } from '#plane/programs/program-routes.ts'
import { operatorReceiptRoutes } from '#plane/revocation/receipt-routes.ts'
import { operatorSchedulingRoutes } from '#plane/fleet/scheduling-routes.ts'
import { operatorStatusRoutes } from '#plane/ca/certificate-status-routes.ts'
import { operatorStoreRoutes } from '#plane/continuity/store-routes.ts'
import type { AgentFiles } from '#plane/enrollment/agent-files.ts'
import { operatorAgentRoutes } from '#plane/enrollment/agent-routes.ts'
import { operatorTokenRoutes } from '#plane/enrollment/token-routes.ts'
import { operatorSignerRoutes } from '#plane/tasks/signer-routes.ts'
import type { TaskSignersHere } from '#plane/tasks/task-signers.ts'
import { openQueueLength } from '#plane/tasks/queue-length.ts'
import { operatorRolloutRoutes } from '#plane/tasks/rollout-routes.ts'
import { operatorTaskRoutes } from '#plane/tasks/task-routes.ts'
import { operatorVClusterRoutes } from '#plane/fleet/vcluster-routes.ts'
import type { Route } from '#plane/http/route.ts'
import type { KeySeal } from '#domain/operators/operator-keys.ts'
import type { Authority } from '#plane/authority/authority.ts'
import type { ProgramsAuthority } from '#plane/authority/programs-authority.ts'
import type { ProgramLists } from '#plane/programs/program-lists.ts'
import {
  operatorWorkerIssuerRoutes,
  operatorWorkerRoutes,
  type OperatorWorkerParts,
} from '#plane/workers/operator-worker-routes.ts'
import type { RecoveryAuthority } from '#plane/authority/recovery-authority.ts'
import type { KeyBook } from '#plane/authn/operator-key-book.ts'
import type { RevocationLists } from '#plane/ca/revocation-lists.ts'
import type { Arrivals } from '#plane/core/arrivals.ts'
import type { PlaneUrls } from '#plane/core/configuration.ts'
import type { Core } from '#plane/core/core.ts'
import type { RecoverabilityCounts } from '#plane/core/count-recoverable.ts'
import type { OpenChannels, PeerProofs } from '#plane/core/open-channels.ts'
import type { PendingCutOffs } from '#plane/cut-off/pending-cut-offs.ts'
import type { JournalWatch } from '#plane/journal/journal-watch.ts'
import type { Receipts } from '#plane/revocation/receipts.ts'

export type OperatorRouteParts = {
  readonly authority: Authority
  readonly programs: Pick<ProgramsAuthority, 'roots'>
  readonly workerIssuers: OperatorWorkerParts['issuers']
  readonly keySets: OperatorWorkerParts['keySets']
  readonly programLists: Pick<ProgramLists, 'lists'>
  readonly issuers: Omit<IssuerRouteParts, 'builtIn'>
  readonly issuance: Pick<Issuance, 'book' | 'roots' | 'programRoots'>
  readonly recovery: Pick<RecoveryAuthority, 'roots' | 'statementKeys'>
  readonly channels: OpenChannels
  readonly peers: PeerProofs
  readonly receipts: Receipts
  readonly cutOffs: Pick<PendingCutOffs, 'run' | 'warnings'>
  readonly revocationLists: Pick<RevocationLists, 'list'>
  readonly journalWatch: JournalWatch
  readonly keySeal: KeySeal
  readonly keyBook: Pick<KeyBook, 'grants' | 'forged'>
  /** Where machines find the plane: what join strings and repair bundles carry, with the trust to go there. */
  readonly urls: () => PlaneUrls
  readonly planeNames: PlaneNames
  readonly taskSigners: TaskSignersHere
  readonly agentFiles: AgentFiles
  readonly recoverability: () => Promise<RecoverabilityCounts>
}

/** What the listener has of its own. */
export type OperatorRouteSources = { readonly arrivals: Arrivals; readonly health: HealthSources }

export const operatorRoutes = (
  core: Core,
  parts: OperatorRouteParts,
  { arrivals, health }: OperatorRouteSources,
): readonly Route[] => {
  const { authority, programs, programLists, recovery, channels, peers, receipts, cutOffs, urls } = parts
  const { revocationLists, journalWatch, keySeal, keyBook, planeNames, agentFiles, recoverability } = parts
  const { taskSigners, workerIssuers, keySets } = parts
  const workers = { issuers: workerIssuers, keySets, receipts, cutOffs }
  const bundled = { roots: () => [...programs.roots(), ...parts.issuance.programRoots.current()] }
  return [
    ...operatorNodeRoutes(core, { channels, peers, recoverability }),
    ...operatorNodeActions(core, { channels, peers, receipts, recovery, urls, cutOffs }),
    ...operatorProgramRoutes(core, { lists: programLists }),
    ...operatorScrapeRoutes(core, { channels, peers }),
    ...operatorReceiptRoutes(core, { arrivals, receipts }),
    ...operatorSchedulingRoutes(core, { channels, peers, arrivals }),
    ...operatorAllocationRoutes(core),
    ...operatorTaskRoutes(core, { arrivals, channels, queueLength: openQueueLength(core) }),
    ...operatorRolloutRoutes(core, { arrivals }),
    ...operatorVClusterRoutes(core, { channels, peers }),
    ...operatorTokenRoutes(core, { issuer: authority, urls }),
    ...operatorAgentRoutes(agentFiles, urls),
    ...operatorPolicyRoutes(core, authority),
    ...operatorNameRoutes(core, { authority, planeNames, urls }),
    ...operatorCaRoutes(core, { authority, programs: bundled, recovery, channels, urls, cutOffs }),
    ...operatorStatusRoutes(core, { authority, revocationLists }),
    ...operatorIssuanceRoutes(core, cutOffs),
    ...operatorSignerRoutes(core, taskSigners),
    ...operatorPlanRoutes(core, { authority, channels, peers, receipts, planeNames, taskSigners }),
    ...operatorDocumentRoutes(core, authority),
    ...operatorHardwareRoutes(core, { channels, peers }),
    ...operatorPeerDomainRoutes(core, { authority, recovery, nodeUrl: () => urls().node }),
    ...operatorWorkerRoutes(core, workers),
    ...operatorWorkerIssuerRoutes(core, workers),
    ...operatorIssuerRoutes(core, { ...parts.issuers, builtIn: authority }),
    ...operatorMigrationRoutes(core, { ...parts.issuers, ...parts.issuance }),
    ...operatorAlertRoutes(core),
    ...operatorJournalRoutes(core, { arrivals, journalWatch }),
    ...operatorKeyRoutes(core, { keySeal, keyBook }),
    ...operatorStoreRoutes(core),
    ...operatorHealthRoutes(health),
  ]
}
