// Whether the store is the one its nodes have seen, and that an operator takes it for what it is.

import type { Static } from 'typebox'
import { confirmStore, type ConfirmStoreDeps } from './confirm-store.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { continuityView, doubtView } from './continuity-view.ts'
import { ReasonRequest } from '#wire/api/operator-api.ts'
import { ConfirmStoreAnswer, ContinuityView } from '#wire/continuity/store-api.ts'
import { attributionOf } from '#plane/http/operator-call.ts'
import { answer, type Route } from '#plane/http/route.ts'

export const operatorStoreRoutes = (deps: ConfirmStoreDeps): readonly Route[] => [
  {
    method: 'GET',
    path: '/v1/store/continuity',
    access: 'viewer',
    summary: 'Whether nodes have seen more of the journal than this store has',
    answer: ContinuityView,
    handle: async () => answer(continuityView((await domainSettingsRow(deps.store)).value.continuity)),
  },
  {
    method: 'POST',
    path: '/v1/store/confirm',
    access: 'platform-admin',
    summary: 'Takes a store that is an older copy for what it is: issuing goes on',
    body: ReasonRequest,
    answer: ConfirmStoreAnswer,
    handle: async (call) => {
      const { reason } = call.body as Static<typeof ReasonRequest>
      const done = await confirmStore(deps, reason, attributionOf(call))
      return done.kind === 'refused' ? done : answer({ lineage: done.lineage, confirmed: doubtView(done.doubt) })
    },
  },
]
