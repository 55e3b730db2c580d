// For whatever watches the plane.

import { Type } from 'typebox'
import { sha256Hex } from '#platform/bytes.ts'
import { Readiness } from '#wire/api/operator-api.ts'
import { answer, type Answer, type Route } from '#plane/http/route.ts'

export type HealthDeps = {
  /** Empty when the plane can do its work. */
  readonly notReady: () => readonly string[]
  /** What it cannot do though it is ready: nobody is served better by taking it out of service. */
  readonly warnings: () => readonly string[]
  /** In the text format of Prometheus. */
  readonly metrics: () => Promise<string>
  /** Called once, for the first caller: the description does not change while a plane runs. */
  readonly openapi: () => object
}

const metricsContentType = 'text/plain; version=0.0.4; charset=utf-8'

const openApiAnswer = (document: object): Answer => {
  const body = Buffer.from(JSON.stringify(document))
  const contentType = 'application/json; charset=utf-8'
  return { kind: 'answer', status: 200, body, contentType, etag: `"${sha256Hex(body).slice(0, 32)}"` }
}

const Alive = Type.Object({ alive: Type.Boolean() })

export const operatorHealthRoutes = (deps: HealthDeps): readonly Route[] => {
  let openapi: Answer | null = null
  return [
    {
      method: 'GET',
      path: '/healthz',
      access: 'anyone',
      always: true,
      summary: 'The process answers',
      answer: Alive,
      handle: async () => answer({ alive: true }),
    },
    {
      method: 'GET',
      path: '/readyz',
      access: 'anyone',
      always: true,
      summary: 'Whether the plane can do its work, and if not (503), why',
      answer: Readiness,
      handle: async () => {
        const reasons = deps.notReady()
        return answer(
          { ready: reasons.length === 0, reasons, warnings: deps.warnings() },
          reasons.length === 0 ? 200 : 503,
        )
      },
    },
    {
      method: 'GET',
      path: '/metrics',
      access: 'viewer',
      always: true,
      summary: 'Metrics in the text format of Prometheus',
      handle: async () => ({
        kind: 'answer',
        status: 200,
        body: await deps.metrics(),
        contentType: metricsContentType,
      }),
    },
    {
      method: 'GET',
      path: '/openapi.json',
      access: 'anyone',
      always: true,
      summary: 'This description of the API',
      handle: async () => (openapi ??= openApiAnswer(deps.openapi())),
    },
  ]
}
