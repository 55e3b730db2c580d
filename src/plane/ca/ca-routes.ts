// The certificate authority, for those who look after it.

import { isRefusal } from '#domain/core/refusal.ts'
import { withdrawAuthority } from './withdraw-authority.ts'
import type { PendingCutOffs } from '#plane/cut-off/pending-cut-offs.ts'
import type { Authority } from '#plane/authority/authority.ts'
import type { RecoveryAuthority } from '#plane/authority/recovery-authority.ts'
import { toPem } from '#pki/pem.ts'
import { formatJoinString } from '#wire/core/join-string.ts'
import { attributionOf, answer, type Route, serve } from '#plane/http/route.ts'
import type { PlaneUrls } from '#plane/core/configuration.ts'
import type { Issuer } from '#plane/core/issuer.ts'
import { isoTime, type Clock } from '#platform/clock.ts'
import { bundleApi, caApi } from '#wire/ca/ca-api.ts'
import type { FlowCore } from '#plane/core/core.ts'
import type { OpenChannels } from '#plane/core/open-channels.ts'

/** Those of outside issuers that outputs name included. */
type ProgramRoots = { readonly roots: () => readonly string[] }

export type CaParts = {
  readonly authority: Authority
  readonly programs: ProgramRoots
  readonly recovery: Pick<RecoveryAuthority, 'statementKeys'>
  readonly channels: Pick<OpenChannels, 'count'>
  readonly urls: () => Pick<PlaneUrls, 'node' | 'marked'>
  readonly cutOffs: Pick<PendingCutOffs, 'run'>
}

export const operatorCaRoutes = (
  { feed }: Pick<FlowCore, 'feed'>,
  { authority, programs, recovery, channels, urls, cutOffs }: CaParts,
): readonly Route[] =>
  serve(caApi, {
    show: async () => answer(authority.view()),
    rotate: async (call) => {
      const outcome = await authority.rotate(attributionOf(call))
      return isRefusal(outcome) ? outcome : answer(authority.view())
    },
    withdraw: async (call) => {
      const { issuer, reason } = call.body
      const by = attributionOf(call)
      const done = await cutOffs.run({ kind: 'withdraw', issuer, reason, by }, () =>
        withdrawAuthority(feed, authority, channels, { issuer, reason, by }),
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
      const outcome = await authority.request(attributionOf(call), call.body.workers === true ? 'workers' : 'runtime')
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
      const { node: url, marked } = urls()
      const join = formatJoinString({ url, domain, rootFingerprint, secret: null, marked })
      return answer({
        roots: authority.roots(),
        root: `sha256:${rootFingerprint}`,
        root_fingerprint: rootFingerprint,
        programs: [...programs.roots()],
        statement_keys: recovery.statementKeys().map((spki) => toPem('PUBLIC KEY', Buffer.from(spki, 'base64'))),
        join,
      })
    },
  })

/** On the node listener, for anyone: what a machine pins before it enrolls. */
export const bundleRoutes = (
  clock: Clock,
  issuer: Pick<Issuer, 'roots' | 'rootFingerprint'>,
  programs: ProgramRoots,
  domainName: string,
): readonly Route[] =>
  serve(bundleApi, {
    bundle: async () =>
      answer({
        domain: domainName,
        roots: issuer.roots(),
        root_fingerprint: issuer.rootFingerprint(),
        programs: [...programs.roots()],
        server_time: isoTime(clock.nowMs()),
      }),
  })
