// A client certificate becomes a principal, of a node or of a worker: resolved by issuer and serial to the row it was issued as, and equal to it
// byte for byte (ruling 9). Nothing after this looks at a certificate.

import { certificateKey, type CertificateRow } from '#domain/core/certificate.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { IssuerId, NodeId } from '#domain/core/node.ts'
import type { Anonymous, NodePrincipal, WorkerPrincipal } from '#domain/core/principal.ts'
import { judgeCertificate } from '#domain/identity/presented-certificate.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { judgeWorkerCertificate } from '#domain/workers/worker.ts'
import { issuerAndSerial } from '#pki/parse-certificate.ts'
import { sha256Hex } from '#platform/bytes.ts'
import { peerCertificate, type SecuredSocket } from '#platform/tls-server.ts'
import type { WorkersAuthority } from '#plane/authority/workers-authority.ts'
import type { SecondHolders } from '#plane/identity/second-holder.ts'
import type { HoldOff } from '#plane/limits/hold-off.ts'
import type { RetryTimes } from '#plane/limits/retry-times.ts'
import type { AgentEvidence } from '#wire/core/agent-evidence.ts'
import type { DenyList } from './deny-list.ts'
import type { Core } from '#plane/core/core.ts'

/** `evidence`: what the caller says of its process; asked for only when there may be two holders. */
export type NodeAuthn = (
  socket: SecuredSocket,
  source: string,
  evidence: () => AgentEvidence | null,
) => Promise<NodePrincipal | WorkerPrincipal | Anonymous | Refusal>

export type NodeAuthnParts = {
  readonly settings: () => Pick<DomainSettings, 'clockToleranceMs'>
  readonly denyList: DenyList
  readonly retryTimes: RetryTimes
  readonly holdOff: HoldOff
  /** A caller that is a copy is written down, or fenced, before it is refused. */
  readonly secondHolders: Pick<SecondHolders, 'refuseReplaced'>
  /** The id of an authority by what its leaves name it by. Only one outside has another. */
  readonly issuerIdOf: (subjectKeyId: string) => IssuerId
  /** The issuers that sign for workers, and for no node. */
  readonly workers: Pick<WorkersAuthority, 'has' | 'withdrawnIssuers'>
  /** Whether it is one of an outside issuer. The row of the worker, which has a MAC, names the certificate. */
  readonly isOutside: (issuer: IssuerId) => boolean
  /** Null: no order that waits for the store keeps this node, or this worker, out. */
  readonly barred: (node: NodeId) => Refusal | null
  readonly workerBarred: (worker: string) => Refusal | null
}

/** What a connection presented never changes; everything that can change is asked anew on every request. */
type Presented =
  { readonly issuer: string; readonly serial: string; readonly sha256: string } | 'nothing' | 'unreadable'

export const openNodeAuthn = (core: Pick<Core, 'store' | 'clock'>, parts: NodeAuthnParts): NodeAuthn => {
  const presented = new WeakMap<SecuredSocket, Presented>()

  const presentedBy = (socket: SecuredSocket): Presented => {
    const known = presented.get(socket)
    if (known !== undefined) return known
    const read = readCertificate(socket)
    presented.set(socket, read)
    return read
  }

  return async (socket, source, evidence) => {
    const certificate = presentedBy(socket)
    if (certificate === 'nothing') return { kind: 'anonymous', source }
    if (certificate === 'unreadable') return refuse('CLIENT_CERT_UNKNOWN')

    const key = certificateKey(parts.issuerIdOf(certificate.issuer), certificate.serial)
    const stored = await core.store.get('certificate', key)
    const row = stored !== null && stored.value.sha256 === certificate.sha256 ? stored.value : null
    if (row !== null && row.subject.kind === 'worker')
      return workerOf(core, parts, { row, id: row.subject.worker, source })
    // What that authority has signed is a worker's, whatever a row says.
    if (row !== null && parts.workers.has(row.issuer)) return refuse('CLIENT_CERT_UNKNOWN')
    // Side by side: on PostgreSQL they are one round trip. The ban is read for certificates without a denial of their own,
    // which a replica of an older release may have issued over a key that another node holds.
    const [node, keyBan] = await Promise.all([
      row !== null && row.subject.kind === 'node' ? core.store.get('node', row.subject.node) : null,
      row === null ? null : core.store.get('key-ban', row.spki),
    ])
    const verdict = judgeCertificate({
      row,
      node: node === null ? null : node.value,
      denied: row !== null && parts.denyList.denies(row),
      keyBanned: keyBan !== null,
      issuerWithdrawn: row !== null && parts.denyList.withdrawnIssuers().includes(row.issuer),
      source,
      toleranceMs: parts.settings().clockToleranceMs,
      nowMs: core.clock.nowMs(),
    })
    if (verdict.kind === 'refused' && verdict.secondHolderOf !== undefined) {
      const { node: impersonated, serial } = verdict.secondHolderOf
      const caller = { node: impersonated.id, evidence: evidence(), source, serial, correlation: null }
      const copy = await parts.secondHolders.refuseReplaced(impersonated, caller)
      if (copy !== null) return copy
    }
    if (verdict.kind === 'refused' && verdict.code === 'ISSUER_WITHDRAWN' && node !== null) {
      // With a code that every agent knows, also one of the previous release: it sends the agent into recovery, not into a loop.
      const said = refuse('CLIENT_CERT_DENIED', 'the authority that issued it has been withdrawn')
      return { ...said, retryAfterMs: parts.retryTimes.nextMs(), about: aboutNode(node.value.id) }
    }
    if (verdict.kind === 'refused' && verdict.fromFuture === true && node !== null) {
      // A clock that was ahead has dated the certificates of many: they do not all recover in the same moment.
      return { ...verdict, retryAfterMs: parts.retryTimes.nextMs(), about: aboutNode(node.value.id) }
    }
    const barred = verdict.kind === 'node' ? parts.barred(verdict.id) : null
    if (barred !== null) return barred
    if (verdict.kind === 'node' && parts.holdOff.over(verdict.id) !== null) {
      return { ...refuse('BUSY', 'an operator is deciding about this node'), retryAfterMs: 1000 }
    }
    // The caller has proved the key of that node in the handshake, also if its certificate is refused.
    return verdict.kind === 'refused' && node !== null ? { ...verdict, about: aboutNode(node.value.id) } : verdict
  }
}

type WorkerRow = { readonly row: CertificateRow; readonly id: string; readonly source: string }

const workerOf = async (
  { store, clock }: Pick<Core, 'store' | 'clock'>,
  { denyList, workers, isOutside, settings, workerBarred }: NodeAuthnParts,
  { row, id, source }: WorkerRow,
): Promise<WorkerPrincipal | Refusal> => {
  const [worker, keyBan] = await Promise.all([store.get('worker', id), store.get('key-ban', row.spki)])
  const issuer = worker === null ? null : await store.get('worker-issuer', worker.value.issuer)
  const verdict = judgeWorkerCertificate({
    row,
    worker: worker?.value ?? null,
    issuer: issuer?.value ?? null,
    byWorkersAuthority: workers.has(row.issuer) || isOutside(row.issuer),
    denied: denyList.denies(row),
    keyBanned: keyBan !== null,
    issuerWithdrawn: [...denyList.withdrawnIssuers(), ...workers.withdrawnIssuers()].includes(row.issuer),
    source,
    toleranceMs: settings().clockToleranceMs,
    nowMs: clock.nowMs(),
  })
  const barred = workerBarred(id)
  // As once the order is committed: of a worker that is revoked nothing else is said, if the certificate is its own at all.
  const said =
    barred === null || (verdict.kind === 'refused' && verdict.code === 'CLIENT_CERT_UNKNOWN') ? verdict : barred
  // The caller has proved the key of that worker in the handshake, also if its certificate is refused.
  return said.kind === 'refused' ? { ...said, about: { actor: `worker:${id}` } } : said
}

const aboutNode = (node: NodeId) => ({ node, actor: `node:${node}` })

const readCertificate = (socket: SecuredSocket): Presented => {
  const der = peerCertificate(socket)
  if (der === null) return 'nothing'
  const id = issuerAndSerial(der)
  return id === null ? 'unreadable' : { ...id, sha256: sha256Hex(der) }
}
