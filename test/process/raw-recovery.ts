// A machine that recovers without the agent: every call when the test says so, over real TLS, the listener verified by
// the recovery roots it was given.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { makeCsr } from '#pki/csr.ts'
import { generateKey, type PrivateKey } from '#pki/keys.ts'
import { sha256Hex } from '#platform/bytes.ts'
import type { RecoverRequest } from '#wire/recovery/recovery-api.ts'
import { recoveryProofBytes } from '#wire/core/statement.ts'
import { nodeCall, type Identity, type NodeTarget } from './node-call.ts'
import type { Reply } from './operator-call.ts'
import { rawNode, type RawNode } from './raw-node.ts'
import type { Plane } from './start-plane.ts'

export type RecoverableNode = {
  readonly id: string
  readonly node: RawNode
  /** The recovery listener, and the roots it was given for it. */
  readonly target: NodeTarget
  readonly recoveryKey: PrivateKey
  /** As given with the last success. */
  counter(): string
  token(): string | null
  challenge(target?: NodeTarget): Promise<string>
  /** What `recover` would send; a new request each time unless `csr` is given. */
  body(more?: Partial<RecoverRequest> & { readonly challenge?: string }): Promise<RecoverRequest>
  recover(more?: Partial<RecoverRequest> & { readonly challenge?: string }): Promise<Reply>
  /** A recovery that succeeds, after which the node presents what it got. */
  comeBack(): Promise<Reply>
  rehearse(more?: object): Promise<Reply>
}

export const askChallenge = async (target: NodeTarget, node?: string): Promise<string> => {
  const asked = { nonce: randomBytes(16).toString('base64url'), ...(node !== undefined && { node_id: node }) }
  const { status, body } = await nodeCall(target, null, 'POST', '/v1/challenge', asked)
  assert.equal(status, 200, JSON.stringify(body))
  return body.challenge
}

const signed = (key: PrivateKey, about: Parameters<typeof recoveryProofBytes>[0]): string =>
  Buffer.from(key.sign(recoveryProofBytes(about))).toString('base64url')

/** Of a process of this name. */
export const rawEvidence = (instance: string): RecoverRequest['evidence'] => ({
  instance: instance.padEnd(22, '0'),
  hardware: { macs: [], bmc_serial: null },
  machine: null,
  agent_version: 'raw',
})

/** Enrolled, confirmed, and registered to recover by a key or a bearer token. */
export const recoverableNode = async (
  plane: Plane,
  id: string,
  by: 'key' | 'bearer' = 'key',
): Promise<RecoverableNode> => {
  const invited = await plane.api('POST', '/v1/tokens', { node: id })
  const node = rawNode(await plane.target())
  const recoveryKey = generateKey('p256')
  const challenge = await askChallenge(node.target)
  const proof = signed(recoveryKey, {
    ...{ purpose: 'register', node: '-', challenge, csrHash: sha256Hex(node.csr), counter: '-' },
  })
  const public_key = Buffer.from(recoveryKey.spki).toString('base64')
  const recovery = by === 'key' ? { kind: 'key', public_key, challenge, proof } : { kind: 'bearer' }
  const enrolled = await node.enrollByToken(invited.body.secret, { recovery })
  assert.equal(enrolled.status, 200, JSON.stringify(enrolled.body))
  assert.equal((await node.confirm()).status, 200)

  let last = enrolled.body
  const target = { url: plane.recoveryUrl, roots: enrolled.body.recovery_trust.roots }
  const credential = async (csr: string | null, counter: string | null, given?: string) => {
    if (by === 'bearer') return { kind: 'bearer', token: last.recovery_token } as const
    const asked = given ?? (await askChallenge(target, id))
    const purpose = csr === null ? 'rehearse' : 'recover'
    const csrHash = csr === null ? '-' : sha256Hex(csr)
    const about = { purpose, node: id, challenge: asked, csrHash, counter: counter ?? '-' } as const
    return { kind: 'key', challenge: asked, proof: signed(recoveryKey, about) } as const
  }
  const body: RecoverableNode['body'] = async ({ challenge: given, ...more } = {}) => {
    const { csr = makeCsr(generateKey('p256'), 'node'), counter = last.counter } = more
    return {
      node_id: id,
      credential: await credential(csr, counter, given),
      counter,
      csr,
      failure: {
        class: 'cert_expired',
        code: 'CLIENT_CERT_EXPIRED',
        since: new Date().toISOString(),
        cert_not_after: null,
      },
      evidence: rawEvidence('original'),
      correlation: `story-${id}`,
      ...more,
    }
  }
  const recover: RecoverableNode['recover'] = async (more) =>
    nodeCall(target, null, 'POST', '/v1/recover', await body(more))
  return {
    ...{ id, node, target, recoveryKey, body, recover },
    counter: () => last.counter,
    token: () => last.recovery_token ?? null,
    challenge: (from = target) => askChallenge(from, id),
    async comeBack() {
      const key = generateKey('p256')
      const reply = await recover({ csr: makeCsr(key, 'node') })
      assert.equal(reply.status, 200, JSON.stringify(reply.body))
      last = reply.body
      const identity: Identity = { keyPem: key.pkcs8Pem(), chainPem: reply.body.certificate_chain }
      node.use(identity)
      return reply
    },
    async rehearse(more = {}) {
      const counter = last.counter
      const proven = await credential(null, counter)
      const rest = { counter, evidence: rawEvidence('original'), disk_reserve: true, clock_skew_ms: 0, ...more }
      return nodeCall(target, null, 'POST', '/v1/rehearse', { node_id: id, credential: proven, ...rest })
    },
  }
}
