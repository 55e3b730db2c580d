// Calls for monitoring and load balancers.

import { sha256Hex } from '#platform/bytes.ts'
import { parseShard } from '#plane/core/shard.ts'
import { answer, type Answer, type Route, serve } from '#plane/http/route.ts'
import type { NodeMetrics } from '#plane/metrics/node-metrics.ts'
import { healthApi } from '#wire/core/health-api.ts'

export type HealthSources = {
  /** Empty when the plane can do its work. */
  readonly notReady: () => readonly string[]
  /** What it cannot do though it is ready: taking it out of service would help no caller. */
  readonly warnings: () => readonly string[]
  /** In the text format of Prometheus. */
  readonly metrics: () => Promise<string>
  readonly nodeMetrics: NodeMetrics['text']
  /** Called once, for the first caller: the description does not change while a plane runs. */
  readonly openapi: () => object
}

const metricsContentType = 'text/plain; version=0.0.4; charset=utf-8'

const openApiAnswer = (document: object): Answer => {
  const body = Buffer.from(JSON.stringify(document))
  const contentType = 'application/json; charset=utf-8'
  return { kind: 'answer', status: 200, body, contentType, etag: `"${sha256Hex(body).slice(0, 32)}"` }
}

export const operatorHealthRoutes = (sources: HealthSources): readonly Route[] => {
  let openapi: Answer | null = null
  return serve(healthApi, {
    alive: async () => answer({ alive: true }),
    ready: async () => {
      const reasons = sources.notReady()
      return answer(
        { ready: reasons.length === 0, reasons, warnings: sources.warnings() },
        reasons.length === 0 ? 200 : 503,
      )
    },
    metrics: async () => ({
      kind: 'answer',
      status: 200,
      body: await sources.metrics(),
      contentType: metricsContentType,
    }),
    nodeMetrics: async ({ query }) => {
      const shard = parseShard(query.shard)
      if (shard !== null && 'kind' in shard) return shard
      const text = await sources.nodeMetrics(shard)
      return 'kind' in text ? text : { kind: 'answer', status: 200, body: text, contentType: metricsContentType }
    },
    openapi: async () => (openapi ??= openApiAnswer(sources.openapi())),
  })
}
