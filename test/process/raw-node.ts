// A node without the agent: every call when the test says so, and nothing else.

import { makeCsr } from '#pki/csr.ts'
import { generateKey, type KeyType, type PrivateKey } from '#pki/keys.ts'
import type { AgentEvidence } from '#wire/core/agent-evidence.ts'
import { parseJoinString } from '#wire/core/join-string.ts'
import { nodeCall, type Identity, type NodeTarget } from './node-call.ts'
import type { Reply } from './operator-call.ts'
import { openRawChannel, type ChannelBehaviour, type NotOpened, type RawChannel } from './raw-channel.ts'

export type RawNode = {
  readonly target: NodeTarget
  readonly key: PrivateKey
  /** The request `enroll` sends: repeated, it is the same. */
  readonly csr: string
  id(): string
  epoch(): number
  /** What it presents: the certificate of the last success, unless told otherwise. */
  identity(): Identity
  /** A join string or a bare secret. */
  enrollByToken(token: string, more?: object): Promise<Reply>
  enrollByHardware(hardware: { macs: string[]; bmc_serial: string | null }, more?: object): Promise<Reply>
  confirm(body?: object): Promise<Reply>
  /** Asks for a successor with another key (or that of `request`, to repeat it) and does not use it yet. */
  renew(request?: Renewal): Promise<{ reply: Reply; request: Renewal; identity: Identity | null }>
  /** What a renewal would ask for, made before it is asked. */
  newRenewal(): Renewal
  /** From now on it presents this. */
  use(identity: Identity): void
  openChannel(behaviour?: ChannelBehaviour): Promise<RawChannel | NotOpened>
  call(method: 'GET' | 'POST', path: string, body?: object): Promise<Reply>
  /** Another process that has all this one has by now, and says of itself what it is given. */
  copy(evidence: AgentEvidence | null): RawNode
}

type Known = { readonly id: string; readonly epoch: number; readonly identity: Identity }

export type Renewal = { readonly key: PrivateKey; readonly csr: string }

const newRenewal = (type: KeyType = 'ed25519'): Renewal => {
  const key = generateKey(type)
  return { key, csr: makeCsr(key, 'node') }
}

/** `evidence`: what it says of its process and machine with every call; null: nothing, like an older agent. */
export const rawNode = (
  target: NodeTarget,
  type: KeyType = 'ed25519',
  evidence: AgentEvidence | null = null,
  has: { readonly first: Renewal; readonly known: Known } | null = null,
): RawNode => {
  const first = has === null ? newRenewal(type) : has.first
  let known: Known | null = has === null ? null : has.known
  const enrolled = (): Known => {
    if (known === null) throw new Error('this node has not enrolled yet')
    return known
  }
  const enroll = async (body: object): Promise<Reply> => {
    const reply = await nodeCall(target, null, 'POST', '/v1/enroll', { csr: first.csr, ...body }, evidence)
    if (reply.status < 300) {
      const { node_id: id, epoch, certificate_chain: chainPem } = reply.body
      known = { id, epoch, identity: { keyPem: first.key.pkcs8Pem(), chainPem } }
    }
    return reply
  }
  const call = (method: 'GET' | 'POST', path: string, body?: object): Promise<Reply> =>
    nodeCall(target, enrolled().identity, method, path, body, evidence)
  return {
    target,
    ...first,
    id: () => enrolled().id,
    epoch: () => enrolled().epoch,
    identity: () => enrolled().identity,
    enrollByToken: (token, more = {}) =>
      enroll({ method: 'token', enrollment_token: parseJoinString(token)?.secret ?? token, ...more }),
    enrollByHardware: (hardware, more = {}) => enroll({ method: 'hardware', hardware_identity: hardware, ...more }),
    confirm: (body = {}) => call('POST', `/v1/nodes/${enrolled().id}/confirm`, body),
    async renew(request = newRenewal(type)) {
      const reply = await call('POST', `/v1/nodes/${enrolled().id}/renew`, { csr: request.csr })
      const identity =
        reply.status < 300 ? { keyPem: request.key.pkcs8Pem(), chainPem: reply.body.certificate_chain } : null
      return { reply, request, identity }
    },
    newRenewal: () => newRenewal(type),
    use: (identity) => void (known = { ...enrolled(), identity }),
    openChannel: (behaviour = {}) =>
      openRawChannel(target, enrolled().identity, enrolled().id, { evidence, ...behaviour }),
    call,
    copy: (other) => rawNode(target, type, other, { first, known: enrolled() }),
  }
}
