// Whether certificates are issued, for those who may stop it.

import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { haltIssuance, resumeIssuance, type IssuanceDeps } from './change-issuance.ts'
import type { PendingCutOffs } from '#plane/cut-off/pending-cut-offs.ts'
import { issuanceView, issuanceApi } from '#wire/identity/issuance-api.ts'
import { attributionOf, answer, type Route, serve } from '#plane/http/route.ts'

type IssuanceRoutesDeps = IssuanceDeps & { readonly cutOffs: Pick<PendingCutOffs, 'run'> }

export const operatorIssuanceRoutes = (deps: IssuanceRoutesDeps): readonly Route[] =>
  serve(issuanceApi, {
    show: async () => answer(issuanceView((await domainSettingsRow(deps.store)).value.issuance)),
    halt: async (call) => {
      const { reason, renewals = false } = call.body
      const by = attributionOf(call)
      const done = await deps.cutOffs.run({ kind: 'halt', reason, renewals, by }, (store) =>
        haltIssuance({ ...deps, store }, { reason, renewals }, by),
      )
      return done.kind === 'refused' ? done : answer(issuanceView(done.issuance))
    },
    resume: async (call) => {
      const done = await resumeIssuance(deps, attributionOf(call))
      return done.kind === 'refused' ? done : answer(issuanceView(done.issuance))
    },
  })
