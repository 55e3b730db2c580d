// The schemas that have a name in the OpenAPI description, in its order; the others are inlined where they are used. The names
// are a promise to those who generate code from it.

import { AcknowledgeRequest, AlertListAnswer, AlertView } from '#wire/alerts/alert-api.ts'
import {
  BundleResponse,
  CaBundleAnswer,
  CaImportRequest,
  CaRequestAnswer,
  CaRequestRequest,
  CaView,
  WithdrawAnswer,
  WithdrawRequest,
} from '#wire/ca/ca-api.ts'
import { CertificateStatusView, CrlAnswer } from '#wire/ca/certificate-status-api.ts'
import { HardwareIdentityBody } from '#wire/core/agent-evidence.ts'
import { ErrorBody } from '#wire/core/error-body.ts'
import { Readiness } from '#wire/core/health-api.ts'
import { EmptyRequest, ReasonRequest, SetRequest } from '#wire/core/shapes.ts'
import { AgentExecutableList, AgentExecutableView } from '#wire/enrollment/agent-api.ts'
import { EnrollRequest } from '#wire/enrollment/enroll-api.ts'
import {
  CreateTokenAnswer,
  CreateTokenRequest,
  TokenBatchAnswer,
  TokenBatchRequest,
  TokenListAnswer,
  TokenView,
} from '#wire/enrollment/token-api.ts'
import { ClaimsAnswer, ClaimsRequest } from '#wire/federation/claim-api.ts'
import { PeerDomainIntroduction, PeerDomainList, PeerDomainView } from '#wire/federation/peer-domain-api.ts'
import {
  AllocationListAnswer,
  AllocationView,
  CreateAllocationRequest,
  ReleaseAllocationRequest,
} from '#wire/fleet/allocation-api.ts'
import {
  CreateHardwareProfileRequest,
  HardwareProfileList,
  HardwareProfileView,
  MachineRequest,
  MachineView,
  ProvisioningRequest,
  TagRequest,
} from '#wire/fleet/hardware-api.ts'
import { HealthRequest, SchedulingAnswer, SchedulingView } from '#wire/fleet/scheduling-api.ts'
import {
  AssignRequest,
  ChangeVClusterRequest,
  CreateVClusterRequest,
  DeleteVClusterRequest,
  MoveRequest,
  UnassignRequest,
  VClusterBody,
  VClusterDeleted,
  VClusterListAnswer,
} from '#wire/fleet/vcluster-api.ts'
import { IssuerList, IssuerTest, IssuerView, OrphanList, TestIssuerRequest } from '#wire/issuers/issuer-api.ts'
import { AddIssuerRequest, ChangeIssuerRequest } from '#wire/issuers/issuer-settings.ts'
import { MigrationPlan, MigrationView } from '#wire/issuers/migration-api.ts'
import {
  ChallengeRequest,
  ChallengeResponse,
  ConfirmRequest,
  ConfirmResponse,
  RenewRequest,
  RenewResponse,
} from '#wire/identity/identity-api.ts'
import { HaltRequest, IssuanceView } from '#wire/identity/issuance-api.ts'
import { EntryView, JournalAnswer, VerifyAnswer } from '#wire/journal/journal-api.ts'
import { DecommissionRequest, DrainRequest, RevokeRequest } from '#wire/node/node-action-api.ts'
import {
  CertificateView,
  ConditionView,
  NodeDetail,
  NodeListAnswer,
  NodeView,
  RegisterRequest,
} from '#wire/node/node-api.ts'
import { CreateKeyAnswer, CreateKeyRequest, KeyListAnswer, KeyView, WhoAmI } from '#wire/operators/key-api.ts'
import { DocumentBody, DocumentPlanned, DocumentRequest } from '#wire/plans/document-api.ts'
import { PlanApplied, PlanRequest, PlanView } from '#wire/plans/plan-api.ts'
import { NamesRequest, NodeNames, ProgramListAnswer, ProgramView } from '#wire/programs/names-api.ts'
import { OutputsOrNone } from '#wire/programs/output-document.ts'
import { ProgramLists, ProgramRequest, ProgramResponse } from '#wire/programs/programs-api.ts'
import {
  RecoverRequest,
  RecoverResponse,
  RehearseRequest,
  RehearseResponse,
  RepairBundle,
} from '#wire/recovery/recovery-api.ts'
import { ReceiptListAnswer, ReceiptView } from '#wire/revocation/receipt-api.ts'
import { CreateProfileRequest, DomainView, ProfileListAnswer, ProfileView } from '#wire/settings/settings-api.ts'
import { RotateSignerRequest, SignerListAnswer, SignerView, WithdrawSignerRequest } from '#wire/tasks/signer-api.ts'
import { OverlayStatementAnswer, OverlayStatementRequest } from '#wire/fleet/overlay-statement-api.ts'
import { TaskVerifiersAnswer, TaskVerifiersRequest } from '#wire/tasks/task-verifiers-api.ts'
import { WorkerCertificate, WorkerCertificateRequest } from '#wire/workers/worker-api.ts'
import {
  ChangeWorkerIssuerRequest,
  CreateWorkerIssuerRequest,
  WorkerIssuerList,
  WorkerIssuerView,
} from '#wire/workers/worker-issuer-api.ts'
import { WorkerListAnswer, WorkerRevokedAnswer, WorkerView } from '#wire/workers/worker-operator-api.ts'
import { CancelTaskRequest, QueueTaskRequest, TaskLineView, TaskListAnswer, TaskView } from '#wire/tasks/task-api.ts'
import { RolloutListAnswer, RolloutView } from '#wire/tasks/rollout-api.ts'
import { TaskResultRequest, TaskWaitAnswer } from '#wire/tasks/task-node-api.ts'

export const publishedSchemas = {
  CancelTaskRequest,
  QueueTaskRequest,
  RolloutListAnswer,
  RolloutView,
  TaskLineView,
  TaskListAnswer,
  TaskResultRequest,
  TaskView,
  TaskWaitAnswer,
  AcknowledgeRequest,
  AlertListAnswer,
  AlertView,
  AllocationListAnswer,
  AllocationView,
  CreateAllocationRequest,
  ReleaseAllocationRequest,
  CaBundleAnswer,
  CaImportRequest,
  CaRequestAnswer,
  CaRequestRequest,
  CaView,
  WithdrawAnswer,
  WithdrawRequest,
  CertificateStatusView,
  CrlAnswer,
  ClaimsAnswer,
  ClaimsRequest,
  PeerDomainIntroduction,
  PeerDomainList,
  PeerDomainView,
  CreateHardwareProfileRequest,
  HardwareProfileList,
  HardwareProfileView,
  MachineRequest,
  MachineView,
  ProvisioningRequest,
  TagRequest,
  HealthRequest,
  HaltRequest,
  IssuanceView,
  BundleResponse,
  ConfirmRequest,
  ConfirmResponse,
  EnrollRequest,
  RecoverResponse,
  ErrorBody,
  HardwareIdentityBody,
  RenewRequest,
  RenewResponse,
  CertificateView,
  ConditionView,
  CreateKeyAnswer,
  CreateKeyRequest,
  CreateProfileRequest,
  CreateTokenAnswer,
  CreateTokenRequest,
  DecommissionRequest,
  DomainBody: DomainView,
  DrainRequest,
  EmptyRequest,
  EntryView,
  JournalAnswer,
  KeyListAnswer,
  KeyView,
  NodeDetail,
  NodeListAnswer,
  NodeView,
  ProfileBody: ProfileView,
  ProfileListAnswer,
  Readiness,
  ReasonRequest,
  RegisterRequest,
  RevokeRequest,
  SetRequest,
  TokenBatchAnswer,
  TokenBatchRequest,
  TokenListAnswer,
  AgentExecutableList,
  AgentExecutableView,
  TokenView,
  VerifyAnswer,
  WhoAmI,
  PlanApplied,
  PlanRequest,
  PlanView,
  DocumentBody,
  DocumentPlanned,
  DocumentRequest,
  ReceiptListAnswer,
  ReceiptView,
  ChallengeRequest,
  ChallengeResponse,
  RecoverRequest,
  RehearseRequest,
  RehearseResponse,
  RepairBundle,
  SchedulingAnswer,
  SchedulingView,
  AssignRequest,
  ChangeVClusterRequest,
  CreateVClusterRequest,
  DeleteVClusterRequest,
  MoveRequest,
  UnassignRequest,
  VClusterBody,
  VClusterDeleted,
  VClusterListAnswer,
  NamesRequest,
  NodeNames,
  OutputsBody: OutputsOrNone,
  ProgramListAnswer,
  ProgramLists,
  ProgramRequest,
  ProgramResponse,
  ProgramView,
  RotateSignerRequest,
  SignerListAnswer,
  SignerView,
  TaskVerifiersAnswer,
  TaskVerifiersRequest,
  OverlayStatementAnswer,
  OverlayStatementRequest,
  WithdrawSignerRequest,
  ChangeWorkerIssuerRequest,
  CreateWorkerIssuerRequest,
  WorkerCertificate,
  WorkerCertificateRequest,
  WorkerIssuerList,
  WorkerIssuerView,
  WorkerListAnswer,
  WorkerRevokedAnswer,
  WorkerView,
  AddIssuerRequest,
  ChangeIssuerRequest,
  IssuerList,
  IssuerTest,
  IssuerView,
  MigrationPlan,
  MigrationView,
  OrphanList,
  TestIssuerRequest,
}
