// What a node with a certificate asks for: to confirm it, to renew it, and the channel.

import { refuse } from '#domain/core/refusal.ts'
import { isoTime } from '#platform/clock.ts'
import { answer, serve, type Route } from '#plane/http/route.ts'
import { identityApi } from '#wire/identity/identity-api.ts'
import { renewalAnswer, type CertificateAnswerDeps } from './certificate-answer.ts'
import { confirmNode } from './confirm-node.ts'
import { renewCertificate, type RenewDeps } from './renew-certificate.ts'

export type IdentityRouteDeps = RenewDeps & CertificateAnswerDeps

export const identityRoutes = (deps: IdentityRouteDeps): readonly Route[] =>
  serve(identityApi, {
    confirm: async (call) => {
      const { persisted = true, detail = null } = call.body
      const { principal, evidence, correlation } = call
      const confirmation = { persisted, detail }
      const outcome = await confirmNode(deps, principal, { confirmation, evidence, correlation })
      if (outcome.kind === 'refused') return outcome
      const { id, membership } = outcome.node
      return answer({ node_id: id, membership: membership.kind, server_time: isoTime(deps.clock.nowMs()) })
    },
    renew: async (call) => {
      const { csr, counter = null, recovery = null } = call.body
      const { principal, evidence, correlation } = call
      const outcome = await renewCertificate(deps, principal, { csr, counter, recovery, evidence, correlation })
      return outcome.kind === 'refused' ? outcome : answer(renewalAnswer(deps, outcome))
    },
    // Reached only without `Upgrade: websocket`; the listener takes upgrades over before this.
    channel: async () => refuse('REQUEST_INVALID', 'this address is a WebSocket: send Upgrade: websocket'),
  })
