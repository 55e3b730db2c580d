// The scrape addresses of nodes, for operators who register them and for the Prometheus that reads them.

import type { Attribution } from '#domain/core/change.ts'
import type { Node, NodeId } from '#domain/core/node.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { decideScrapeAddress } from '#domain/node/scrape-address.ts'
import type { Timers } from '#platform/timers.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'
import type { FlowCore } from '#plane/core/core.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { nodePages } from '#plane/core/pages.ts'
import { inShard, parseShard, type Shard } from '#plane/core/shard.ts'
import { answer, attributionOf, serve, type Answer, type Route } from '#plane/http/route.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { scrapeApi } from '#wire/node/scrape-api.ts'
import { detailOf, type NodeSources } from './operator-node-routes.ts'

type ScrapeCore = FlowCore & { readonly timers: Pick<Timers, 'soon'> }
/** The list is sent as it is read, and never held as a whole. */
type TargetsAnswer = Answer<{ targets: string[]; labels: Record<string, string> }[]>

export const operatorScrapeRoutes = (core: ScrapeCore, sources: NodeSources): readonly Route[] =>
  serve(scrapeApi, {
    setAddress: async (call) => {
      const done = await setScrapeAddress(core, call.params.id, call.body.address, attributionOf(call))
      return done.kind === 'refused' ? done : answer(await detailOf(core, sources, done.node))
    },
    targets: async ({ query }) => {
      const shard = parseShard(query.shard)
      if (shard !== null && 'kind' in shard) return shard
      const { name: domain } = (await domainSettingsRow(core.store)).value
      const body = targetPieces(core, domain, shard) as unknown as TargetsAnswer['body']
      return { kind: 'answer', status: 200, body, contentType: 'application/json' }
    },
  })

const setScrapeAddress = async (
  core: FlowCore,
  id: NodeId,
  address: string | null,
  by: Attribution,
): Promise<{ readonly kind: 'set'; readonly node: Node } | Refusal> => {
  const done = await commitDecision(core, async () => {
    const node = await core.store.get('node', id)
    if (node === null) return refuse('NODE_NOT_FOUND', id)
    const verdict = decideScrapeAddress({ node, address, by, nowMs: core.clock.nowMs() })
    return verdict.kind === 'unchanged' ? { ...verdict, node: node.value } : verdict
  })
  return done.kind === 'refused' ? done : { kind: 'set', node: done.node }
}

/** JSON, piece by piece. A list that breaks off is no JSON: Prometheus then keeps the one before. */
async function* targetPieces(
  { store, timers }: { readonly store: Pick<Store, 'nodes'>; readonly timers: Pick<Timers, 'soon'> },
  domain: string,
  shard: Shard | null,
): AsyncGenerator<string, void, void> {
  let before = '['
  for await (const page of nodePages(store, { timers })) {
    for (const { value } of page) {
      const { id, assignment, profile, membership, scrapeAddress } = value
      if (scrapeAddress === null || membership.kind === 'revoked') continue
      if (shard !== null && !inShard(shard, id)) continue
      const labels = { node: id, vcluster: assignment ?? '', profile, domain }
      yield before + JSON.stringify({ targets: [scrapeAddress], labels })
      before = ',\n'
    }
  }
  yield before === '[' ? '[]' : ']'
}
