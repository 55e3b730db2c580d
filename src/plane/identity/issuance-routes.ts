// Whether certificates are issued, for those who may stop it.

import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { haltIssuance, resumeIssuance, type IssuanceDeps } from './change-issuance.ts'
import type { PendingCutOffs } from '#plane/cut-off/pending-cut-offs.ts'
import { issuanceView } from './issuance-view.ts'
import { HaltRequest, IssuanceView } from '#wire/identity/issuance-api.ts'
import { EmptyRequest } from '#wire/api/operator-api.ts'
import { attributionOf } from '#plane/http/operator-call.ts'
import { answer, type Route } from '#plane/http/route.ts'

type IssuanceRoutesDeps = IssuanceDeps & { readonly cutOffs: Pick<PendingCutOffs, 'run'> }

export const operatorIssuanceRoutes = (deps: IssuanceRoutesDeps): readonly Route[] => [
  {
    method: 'GET',
    path: '/v1/issuance',
    access: 'viewer',
    summary: 'Whether certificates are issued, and who has halted that',
    answer: IssuanceView,
    handle: async () => answer(issuanceView((await domainSettingsRow(deps.store)).value.issuance)),
  },
  {
    method: 'POST',
    path: '/v1/issuance/halt',
    access: 'platform-admin',
    summary: 'No plane of the domain issues anything to a node any more; renewals go on where asked for',
    cutOff: true,
    body: HaltRequest,
    answer: IssuanceView,
    handle: async (call) => {
      const { reason, renewals = false } = call.body as HaltRequest
      const by = attributionOf(call)
      const done = await deps.cutOffs.run({ kind: 'halt', reason, renewals, by }, (store) =>
        haltIssuance({ ...deps, store }, { reason, renewals }, by),
      )
      return done.kind === 'refused' ? done : answer(issuanceView(done.issuance))
    },
  },
  {
    method: 'POST',
    path: '/v1/issuance/resume',
    access: 'platform-admin',
    summary: 'Certificates are issued again',
    body: EmptyRequest,
    answer: IssuanceView,
    handle: async (call) => {
      const done = await resumeIssuance(deps, attributionOf(call))
      return done.kind === 'refused' ? done : answer(issuanceView(done.issuance))
    },
  },
]
