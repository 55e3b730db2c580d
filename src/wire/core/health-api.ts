// Calls for monitoring and load balancers.

import { Type } from 'typebox'
import { endpoint } from './endpoint.ts'
import { ShardQuery } from './shapes.ts'

const Alive = Type.Object({ alive: Type.Boolean() })

export const Readiness = Type.Object({
  ready: Type.Boolean(),
  reasons: Type.Array(Type.String()),
  /** What it cannot do though it is ready. */
  warnings: Type.Array(Type.String()),
})

export const healthApi = {
  alive: endpoint({
    method: 'GET',
    path: '/healthz',
    access: 'anyone',
    always: true,
    summary: 'The process answers',
    answer: Alive,
  }),
  ready: endpoint({
    method: 'GET',
    path: '/readyz',
    access: 'anyone',
    always: true,
    summary: 'Whether the plane can do its work, and if not (503), why',
    answer: Readiness,
    mayBeUnready: true,
  }),
  metrics: endpoint({
    method: 'GET',
    path: '/metrics',
    access: 'viewer',
    always: true,
    summary: 'Metrics in the text format of Prometheus',
  }),
  nodeMetrics: endpoint({
    method: 'GET',
    path: '/metrics/nodes',
    access: 'viewer',
    always: true,
    summary: 'Metrics of each node with a channel on this replica, where the plane was started with --node-metrics',
    query: ShardQuery,
  }),
  openapi: endpoint({
    method: 'GET',
    path: '/openapi.json',
    access: 'anyone',
    always: true,
    summary: 'This description of the API',
  }),
}
