// What a domain is set up with, as one document.

import { isRefusal } from '#domain/core/refusal.ts'
import type { PlanCore } from './compute-plan.ts'
import { planDocument, renderDocument } from './declare-document.ts'
import { attributionOf, answer, type Route, serve } from '#plane/http/route.ts'
import type { LeafLimit } from '#plane/settings/policy-routes.ts'
import { documentApi } from '#wire/plans/document-api.ts'
import { planView } from '#wire/plans/plan-api.ts'

export const operatorDocumentRoutes = (core: PlanCore, authority: LeafLimit): readonly Route[] =>
  serve(documentApi, {
    export: async () => answer(await renderDocument({ core, authority })),
    plan: async (call) => {
      const { document, prune = false } = call.body
      const done = await planDocument(core, authority, { document, prune }, attributionOf(call))
      if (isRefusal(done)) return done
      const { plan, unchanged } = done
      return answer({ plan: plan === null ? null : planView(plan), unchanged }, plan === null ? 200 : 201)
    },
  })
