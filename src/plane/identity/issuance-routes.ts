// Whether certificates are issued, for those who may stop it.

import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { haltIssuance, resumeIssuance } from './change-issuance.ts'
import type { PendingCutOffs } from '#plane/cut-off/pending-cut-offs.ts'
import { issuanceView, issuanceApi } from '#wire/identity/issuance-api.ts'
import { attributionOf, answer, type Route, serve } from '#plane/http/route.ts'
import { withStore, type FlowCore } from '#plane/core/core.ts'

export const operatorIssuanceRoutes = (core: FlowCore, cutOffs: Pick<PendingCutOffs, 'run'>): readonly Route[] =>
  serve(issuanceApi, {
    show: async () => answer(issuanceView((await domainSettingsRow(core.store)).value.issuance)),
    halt: async (call) => {
      const { reason, renewals = false } = call.body
      const by = attributionOf(call)
      const done = await cutOffs.run({ kind: 'halt', reason, renewals, by }, (store) =>
        haltIssuance(withStore(core, store), { reason, renewals }, by),
      )
      return done.kind === 'refused' ? done : answer(issuanceView(done.issuance))
    },
    resume: async (call) => {
      const done = await resumeIssuance(core, attributionOf(call))
      return done.kind === 'refused' ? done : answer(issuanceView(done.issuance))
    },
  })
