// A worker whose every call a test makes itself.

import assert from 'node:assert/strict'
import { randomUUID, X509Certificate } from 'node:crypto'
import { makeCsr } from '#pki/csr.ts'
import { generateKey, type PrivateKey } from '#pki/keys.ts'
import type { Cluster } from '../fakes/service-accounts.ts'
import { nodeCall, type Identity, type NodeTarget } from './node-call.ts'
import type { Reply } from './operator-call.ts'

export type RawWorker = {
  readonly pod: string
  readonly key: PrivateKey
  id(): string
  certificate(): X509Certificate
  identity(): Identity
  enroll(token?: string, key?: PrivateKey): Promise<Reply>
  renew(token?: string, key?: PrivateKey): Promise<Reply>
  call(method: 'GET' | 'POST', path: string, body?: object): Promise<Reply>
}

export const rawWorker = (target: NodeTarget, cluster: Cluster, pod: string = randomUUID()): RawWorker => {
  const firstKey = generateKey('ed25519')
  let held: { id: string; identity: Identity } | null = null
  const holding = () => {
    if (held === null) throw new Error('it is not enrolled')
    return held
  }
  const keep = (reply: Reply, key: PrivateKey): Reply => {
    if (reply.status === 200)
      held = {
        id: reply.body.worker_id,
        identity: { keyPem: key.pkcs8Pem(), chainPem: reply.body.certificate_chain },
      }
    return reply
  }
  return {
    pod,
    key: firstKey,
    id: () => holding().id,
    certificate: () => new X509Certificate(holding().identity.chainPem),
    identity: () => holding().identity,
    enroll: async (token = cluster.token({ pod }), key = firstKey) =>
      keep(await nodeCall(target, null, 'POST', '/v1/workers/enroll', { token, csr: makeCsr(key, 'x') }), key),
    renew: async (token = cluster.token({ pod }), key = generateKey('ed25519')) => {
      const { id, identity } = holding()
      return keep(
        await nodeCall(target, identity, 'POST', `/v1/workers/${id}/renew`, { token, csr: makeCsr(key, 'x') }),
        key,
      )
    },
    call: (method, path, body) => nodeCall(target, holding().identity, method, path, body),
  }
}

export const enrolledWorker = async (target: NodeTarget, cluster: Cluster): Promise<RawWorker> => {
  const worker = rawWorker(target, cluster)
  const { status, body } = await worker.enroll()
  assert.equal(status, 200, JSON.stringify(body))
  return worker
}
