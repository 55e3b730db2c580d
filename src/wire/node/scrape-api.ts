// Where a Prometheus may scrape machines: registered by operators, listed for its HTTP service discovery.

import { Type } from 'typebox'
import { recordOf } from '#platform/json-schema.ts'
import { endpoint } from '#wire/core/endpoint.ts'
import { closed, NodeParams, orNull, ShardQuery, text } from '#wire/core/shapes.ts'
import { NodeDetail } from './node-api.ts'

/** `POST /v1/nodes/{id}/scrape-address`. Null: it is scraped no more. */
const ScrapeAddressRequest = Type.Object({ address: orNull(text(300)) }, closed)

/** As Prometheus reads it: https://prometheus.io/docs/prometheus/latest/http_sd/ */
const ScrapeTargets = Type.Array(
  Type.Object({
    targets: Type.Array(Type.String()),
    /** `node`, `profile`, `domain`, and `vcluster`, which is empty in maintenance mode. */
    labels: recordOf(Type.String(), Type.String()),
  }),
)

export const scrapeApi = {
  setAddress: endpoint({
    method: 'POST',
    path: '/v1/nodes/:id/scrape-address',
    access: 'operator',
    summary: 'Registers where a Prometheus may scrape a node, or takes that back; the plane never connects to it',
    params: NodeParams,
    body: ScrapeAddressRequest,
    answer: NodeDetail,
  }),
  targets: endpoint({
    method: 'GET',
    path: '/v1/prometheus/targets',
    access: 'viewer',
    summary: 'Every node with a scrape address, for the HTTP service discovery of Prometheus',
    query: ShardQuery,
    answer: ScrapeTargets,
    example: {
      answer: [
        {
          targets: ['10.0.0.7:9100'],
          labels: { node: 'gpu-001', vcluster: 'training', profile: 'gpu-cloud', domain: 'muster.local' },
        },
      ],
    },
  }),
}
