// Whether the store is the one its nodes have seen, and that an operator takes it for what it is.

import { confirmStore, type ConfirmStoreDeps } from './confirm-store.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { continuityView, doubtView, storeApi } from '#wire/continuity/store-api.ts'
import { attributionOf, answer, type Route, serve } from '#plane/http/route.ts'

export const operatorStoreRoutes = (deps: ConfirmStoreDeps): readonly Route[] =>
  serve(storeApi, {
    continuity: async () => answer(continuityView((await domainSettingsRow(deps.store)).value.continuity)),
    confirm: async (call) => {
      const { reason } = call.body
      const done = await confirmStore(deps, reason, attributionOf(call))
      return done.kind === 'refused' ? done : answer({ lineage: done.lineage, confirmed: doubtView(done.doubt) })
    },
  })
