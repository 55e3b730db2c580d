// Every call there is, by the listener that answers it, in the order the description of the API lists them.

import { alertApi } from '#wire/alerts/alert-api.ts'
import { bundleApi, caApi } from '#wire/ca/ca-api.ts'
import { certificateStatusApi } from '#wire/ca/certificate-status-api.ts'
import { storeApi } from '#wire/continuity/store-api.ts'
import type { Endpoint, Endpoints } from '#wire/core/endpoint.ts'
import { healthApi } from '#wire/core/health-api.ts'
import { agentDownloadApi, agentExecutableApi } from '#wire/enrollment/agent-api.ts'
import { enrollApi } from '#wire/enrollment/enroll-api.ts'
import { tokenApi } from '#wire/enrollment/token-api.ts'
import { claimApi } from '#wire/federation/claim-api.ts'
import { peerDomainApi } from '#wire/federation/peer-domain-api.ts'
import { allocationApi } from '#wire/fleet/allocation-api.ts'
import { hardwareApi } from '#wire/fleet/hardware-api.ts'
import { schedulingApi } from '#wire/fleet/scheduling-api.ts'
import { vclusterApi } from '#wire/fleet/vcluster-api.ts'
import { challengeApi, identityApi } from '#wire/identity/identity-api.ts'
import { issuanceApi } from '#wire/identity/issuance-api.ts'
import { issuerApi } from '#wire/issuers/issuer-api.ts'
import { migrationApi } from '#wire/issuers/migration-api.ts'
import { journalApi } from '#wire/journal/journal-api.ts'
import { nodeActionApi } from '#wire/node/node-action-api.ts'
import { nodeApi } from '#wire/node/node-api.ts'
import { scrapeApi } from '#wire/node/scrape-api.ts'
import { keyApi } from '#wire/operators/key-api.ts'
import { documentApi } from '#wire/plans/document-api.ts'
import { planApi } from '#wire/plans/plan-api.ts'
import { nodeNamesApi } from '#wire/programs/names-api.ts'
import { programsApi } from '#wire/programs/programs-api.ts'
import { recoveryApi } from '#wire/recovery/recovery-api.ts'
import { receiptApi } from '#wire/revocation/receipt-api.ts'
import { overlayStatementApi } from '#wire/fleet/overlay-statement-api.ts'
import { planeNamesApi } from '#wire/settings/names-api.ts'
import { taskFileApi } from '#wire/tasks/task-file-api.ts'
import { settingsApi } from '#wire/settings/settings-api.ts'
import { signerApi } from '#wire/tasks/signer-api.ts'
import { taskVerifiersApi } from '#wire/tasks/task-verifiers-api.ts'
import { workerApi } from '#wire/workers/worker-api.ts'
import { workerIssuerApi } from '#wire/workers/worker-issuer-api.ts'
import { workerOperatorApi } from '#wire/workers/worker-operator-api.ts'
import { workerTaskApi } from '#wire/workers/worker-task-api.ts'
import { rolloutApi } from '#wire/tasks/rollout-api.ts'
import { taskApi } from '#wire/tasks/task-api.ts'
import { taskNodeApi } from '#wire/tasks/task-node-api.ts'

export type DescribedListener = {
  readonly name: string
  readonly description: string
  /** Where it answers unless it was set up otherwise, as OpenAPI describes a server. */
  readonly server: {
    readonly url: string
    readonly description: string
    readonly variables?: Readonly<Record<string, { readonly default: string; readonly description: string }>>
  }
  readonly endpoints: readonly Endpoint[]
}

const host = { host: { default: 'muster.internal', description: 'A name of the plane: --server-name' } }

const all = (...groups: readonly Endpoints[]): readonly Endpoint[] => groups.flatMap((group) => Object.values(group))

export const nodeListener: DescribedListener = {
  name: 'node plane',
  description: 'What agents call, over TLS with a client certificate',
  server: { url: 'https://{host}:8443', description: 'The node listener: --node-listen', variables: host },
  endpoints: all(
    enrollApi,
    challengeApi,
    identityApi,
    programsApi,
    taskVerifiersApi,
    overlayStatementApi,
    workerApi,
    taskNodeApi,
    workerTaskApi,
    claimApi,
    bundleApi,
    agentDownloadApi,
    taskFileApi,
  ),
}

export const recoveryListener: DescribedListener = {
  name: 'recovery',
  description: 'What agents call whose certificate cannot help them, on a port and a trust of its own',
  server: { url: 'https://{host}:8442', description: 'The recovery listener: --recovery-listen', variables: host },
  endpoints: all(challengeApi, recoveryApi),
}

/** Viewers read; operators look after nodes and tokens; platform-admins set policy. */
export const operatorListener: DescribedListener = {
  name: 'operator plane',
  description: 'What people and their tools call, with an operator key',
  server: { url: 'http://127.0.0.1:8440', description: 'The operator listener: --operator-listen' },
  endpoints: all(
    nodeApi,
    nodeActionApi,
    nodeNamesApi,
    scrapeApi,
    receiptApi,
    schedulingApi,
    allocationApi,
    taskApi,
    rolloutApi,
    vclusterApi,
    tokenApi,
    agentExecutableApi,
    settingsApi,
    planeNamesApi,
    caApi,
    certificateStatusApi,
    issuanceApi,
    signerApi,
    planApi,
    documentApi,
    hardwareApi,
    peerDomainApi,
    workerOperatorApi,
    workerIssuerApi,
    issuerApi,
    migrationApi,
    alertApi,
    journalApi,
    keyApi,
    storeApi,
    healthApi,
  ),
}

export const everyListener = [nodeListener, recoveryListener, operatorListener] as const
