// The certificate authority, for those who look after it.

import { isRefusal } from '#domain/core/refusal.ts'
import { withdrawAuthority, type WithdrawAuthorityDeps } from './withdraw-authority.ts'
import type { PendingCutOffs } from '#plane/cut-off/pending-cut-offs.ts'
import type { Authority } from '#plane/authority/authority.ts'
import { formatJoinString } from '#wire/core/join-string.ts'
import { attributionOf, answer, type Route, serve } from '#plane/http/route.ts'
import type { Issuer } from '#plane/core/issuer.ts'
import { isoTime, type Clock } from '#platform/clock.ts'
import { bundleApi, caApi } from '#wire/ca/ca-api.ts'

export type CaRoutesDeps = WithdrawAuthorityDeps & {
  readonly authority: Pick<Authority, 'view' | 'rotate' | 'request' | 'importIssued' | 'roots' | 'rootFingerprint'>
  readonly nodeUrl: () => string
  readonly cutOffs: Pick<PendingCutOffs, 'run'>
}

export const operatorCaRoutes = ({ authority, nodeUrl, ...deps }: CaRoutesDeps): readonly Route[] =>
  serve(caApi, {
    show: async () => answer(authority.view()),
    rotate: async (call) => {
      const outcome = await authority.rotate(attributionOf(call))
      return isRefusal(outcome) ? outcome : answer(authority.view())
    },
    withdraw: async (call) => {
      const { issuer, reason } = call.body
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
    request: async (call) => {
      const outcome = await authority.request(attributionOf(call))
      return typeof outcome === 'string' ? answer({ csr: outcome }) : outcome
    },
    importIssued: async (call) => {
      const { certificate } = call.body
      const outcome = await authority.importIssued(certificate, attributionOf(call))
      return isRefusal(outcome) ? outcome : answer(authority.view())
    },
    bundle: async () => {
      const rootFingerprint = authority.rootFingerprint()
      const { domain } = authority.view()
      const join = formatJoinString({ url: nodeUrl(), domain, rootFingerprint, secret: null })
      return answer({ roots: authority.roots(), root_fingerprint: rootFingerprint, join })
    },
  })

export type BundleRouteDeps = {
  readonly domainName: string
  readonly issuer: Pick<Issuer, 'roots' | 'rootFingerprint'>
  readonly clock: Clock
}

/** On the node listener, for anyone: what a machine pins before it enrolls. */
export const bundleRoutes = ({ domainName, issuer, clock }: BundleRouteDeps): readonly Route[] =>
  serve(bundleApi, {
    bundle: async () =>
      answer({
        domain: domainName,
        roots: issuer.roots(),
        root_fingerprint: issuer.rootFingerprint(),
        server_time: isoTime(clock.nowMs()),
      }),
  })
