// What machines may ask of the plane.

import type { VerifySignature } from '#pki/signature.ts'
import type { Core } from '#plane/core/core.ts'
import type { ChannelParts } from '#plane/channel/channel-parts.ts'
import type { PlaneUrls } from '#plane/core/configuration.ts'
import type { ProgramsAuthority } from '#plane/authority/programs-authority.ts'
import type { RecoveryAuthority } from '#plane/authority/recovery-authority.ts'
import type { WorkersAuthority } from '#plane/authority/workers-authority.ts'
import type { ProgramLists } from '#plane/programs/program-lists.ts'
import { programRoutes } from '#plane/programs/program-routes.ts'
import type { EnrollWorkerParts } from '#plane/workers/enroll-worker.ts'
import { workerRoutes } from '#plane/workers/worker-routes.ts'
import { workerTaskRoutes } from '#plane/workers/worker-task-routes.ts'
import type { Tasks } from '#plane/tasks/open-tasks.ts'
import { openQueueLength } from '#plane/tasks/queue-length.ts'
import { nodeTaskRoutes } from '#plane/tasks/task-routes.ts'
import { overlayStatementRoutes } from '#plane/fleet/overlay-statement.ts'
import { taskVerifierRoutes } from '#plane/tasks/signer-routes.ts'
import type { TaskSignersHere } from '#plane/tasks/task-signers.ts'
import { bundleRoutes } from '#plane/ca/ca-routes.ts'
import { agentDownloadRoutes, type AgentRouteParts } from '#plane/enrollment/agent-routes.ts'
import { enrollRoutes } from '#plane/enrollment/enroll-routes.ts'
import { claimRoutes } from '#plane/federation/peer-domain-routes.ts'
import type { Route } from '#plane/http/route.ts'
import { challengeRoutes, identityRoutes } from '#plane/identity/identity-routes.ts'
import type { CopiedImages } from '#plane/identity/copied-images.ts'
import type { NodeLimits } from './node-limits.ts'
import type { Issuer } from '#plane/core/issuer.ts'
import type { Issuance } from '#plane/issuers/open-issuance.ts'
import { taskFileRoutes, type TaskFileParts } from '#plane/tasks/task-files.ts'

export type NodeRouteParts = {
  readonly issuer: Issuer
  readonly orders: Issuance['orders']
  readonly verifyProof: VerifySignature
  readonly recovery: RecoveryAuthority
  readonly programs: ProgramsAuthority
  readonly workers: WorkersAuthority
  readonly programLists: Pick<ProgramLists, 'lists'>
  /** Of outside issuers. */
  readonly outsideRoots: () => readonly string[]
  readonly taskSigners: Pick<TaskSignersHere, 'stored'>
  readonly domainName: string
  readonly urls: () => PlaneUrls
  readonly limits: NodeLimits
  readonly channel: Pick<ChannelParts, 'peerBook' | 'secondHolders' | 'probe'>
  readonly copiedImages: CopiedImages
  readonly agents: AgentRouteParts
  readonly workerIssuers: EnrollWorkerParts['issuers']
  readonly keySets: EnrollWorkerParts['keySets']
  readonly taskPolls: Tasks['polls']
  readonly taskFiles: TaskFileParts
}

/** The order is that of the API's description. */
export const nodeRoutes = (core: Core, parts: NodeRouteParts): readonly Route[] => {
  const { issuer, orders, recovery, programs, programLists, domainName, urls, limits, channel, copiedImages, agents } =
    parts
  const { verifyProof, taskSigners, taskFiles, workers, workerIssuers, keySets, outsideRoots } = parts
  const { anonymousBudget, admission, writeLimit } = limits
  const { peerBook, secondHolders, probe } = channel
  const roots = () => issuer.roots()
  const issuing = { issuer, orders, verifyProof, recovery, domainName, urls, writeLimit, secondHolders, copiedImages }
  return [
    ...enrollRoutes(core, { ...issuing, anonymousBudget, admission, probe, peerBook }),
    ...challengeRoutes(core, { recovery, domainName }, limits.challenges),
    ...identityRoutes(core, issuing),
    ...programRoutes(core, { programs, orders, verifyProof, outsideRoots, lists: programLists, writeLimit }),
    ...taskVerifierRoutes(core, { taskSigners, recovery, domainName }),
    ...overlayStatementRoutes(core, { recovery, domainName }),
    ...workerRoutes(core, {
      workers,
      orders,
      verifyProof,
      roots,
      issuers: workerIssuers,
      keySets,
      anonymousBudget,
      admission,
      writeLimit,
    }),
    ...nodeTaskRoutes(core, parts.taskPolls),
    ...workerTaskRoutes(core, { queueLength: openQueueLength(core), queueLimit: limits.queueLimit }),
    ...claimRoutes(core, limits.anonymousBudget),
    ...bundleRoutes(core.clock, issuer, { roots: () => [...programs.roots(), ...outsideRoots()] }, domainName),
    ...agentDownloadRoutes(agents),
    ...taskFileRoutes(taskFiles),
  ]
}
