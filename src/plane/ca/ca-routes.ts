// The certificate authority, for those who look after it.

import type { Static } from 'typebox'
import { isRefusal } from '#domain/core/refusal.ts'
import { withdrawAuthority, type WithdrawAuthorityDeps } from './withdraw-authority.ts'
import type { PendingCutOffs } from '#plane/cut-off/pending-cut-offs.ts'
import type { Authority } from '#plane/authority/authority.ts'
import { WithdrawAnswer, WithdrawRequest } from '#wire/ca/ca-withdrawal-api.ts'
import { formatJoinString } from '#wire/core/join-string.ts'
import { CaBundleAnswer, CaImportRequest, CaRequestAnswer, CaView } from '#wire/ca/ca-api.ts'
import { EmptyRequest } from '#wire/api/operator-api.ts'
import { attributionOf } from '#plane/http/operator-call.ts'
import { answer, type Route } from '#plane/http/route.ts'

export type CaRoutesDeps = WithdrawAuthorityDeps & {
  readonly authority: Pick<Authority, 'view' | 'rotate' | 'request' | 'importIssued' | 'roots' | 'rootFingerprint'>
  readonly nodeUrl: () => string
  readonly cutOffs: Pick<PendingCutOffs, 'run'>
}

export const operatorCaRoutes = ({ authority, nodeUrl, ...deps }: CaRoutesDeps): readonly Route[] => [
  {
    method: 'GET',
    path: '/v1/ca',
    access: 'viewer',
    summary: 'The authorities on record, and what to worry about',
    answer: CaView,
    handle: async () => answer(authority.view()),
  },
  {
    method: 'POST',
    path: '/v1/ca/rotate',
    access: 'platform-admin',
    summary: 'A new issuing CA from now on',
    body: EmptyRequest,
    answer: CaView,
    handle: async (call) => {
      const outcome = await authority.rotate(attributionOf(call))
      return isRefusal(outcome) ? outcome : answer(authority.view())
    },
  },
  {
    method: 'POST',
    path: '/v1/ca/withdraw',
    access: 'platform-admin',
    summary: 'Somebody else may have its key: nothing this authority has signed is taken any more',
    cutOff: true,
    body: WithdrawRequest,
    answer: WithdrawAnswer,
    handle: async (call) => {
      const { issuer, reason } = call.body as WithdrawRequest
      const by = attributionOf(call)
      const done = await deps.cutOffs.run({ kind: 'withdraw', issuer, reason, by }, () =>
        withdrawAuthority({ authority, ...deps }, issuer, reason, by),
      )
      if (done.kind === 'refused') return done
      const { issuers, successors, channelsCut } = done
      return answer({
        withdrawn: [...issuers],
        successors: [...successors],
        channels_cut: channelsCut,
        ca: authority.view(),
      })
    },
  },
  {
    method: 'POST',
    path: '/v1/ca/request',
    access: 'platform-admin',
    summary: 'A request for an intermediate, to be carried to the offline root',
    body: EmptyRequest,
    answer: CaRequestAnswer,
    handle: async (call) => {
      const outcome = await authority.request(attributionOf(call))
      return typeof outcome === 'string' ? answer({ csr: outcome }) : outcome
    },
  },
  {
    method: 'POST',
    path: '/v1/ca/import',
    access: 'platform-admin',
    summary: "Takes the root's answer to that request into service",
    body: CaImportRequest,
    answer: CaView,
    handle: async (call) => {
      const { certificate } = call.body as Static<typeof CaImportRequest>
      const outcome = await authority.importIssued(certificate, attributionOf(call))
      return isRefusal(outcome) ? outcome : answer(authority.view())
    },
  },
  {
    method: 'GET',
    path: '/v1/ca/bundle',
    access: 'viewer',
    summary: 'The roots that nodes are given',
    answer: CaBundleAnswer,
    handle: async () => {
      const rootFingerprint = authority.rootFingerprint()
      const { domain } = authority.view()
      const join = formatJoinString({ url: nodeUrl(), domain, rootFingerprint, secret: null })
      return answer({ roots: authority.roots(), root_fingerprint: rootFingerprint, join })
    },
  },
]
