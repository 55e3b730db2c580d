// GET /metrics for this machine. A port that is taken is said, and is no reason not to run.

import { boundServer } from '#platform/bounded-server.ts'
import { createHttpServer, listenTcp, stopServer, type HttpRequest, type HttpServer } from '#platform/http-server.ts'
import type { AgentParts } from '#agent/core/agent-deps.ts'
import { metricFacts, metricsText, type Measured } from './metrics.ts'

export type ShownMetrics = { readonly port: number | null; close(): Promise<void> }

type Showing = Measured &
  Pick<AgentParts, 'timers' | 'log'> & {
    readonly config: Pick<AgentParts['config'], 'metricsListen'>
  }

const mostConnections = 16
const closeWithinMs = 500
const unreadable = (): string => 'HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n'

export const showMetrics = async (agent: Showing): Promise<ShownMetrics> => {
  const { metricsListen } = agent.config
  if (metricsListen === null) return { port: null, close: () => Promise.resolve() }
  const server = metricsServer(agent)
  try {
    const port = await listenTcp(server, metricsListen.host, metricsListen.port)
    agent.log.info({ host: metricsListen.host, port }, 'metrics are shown at /metrics')
    return { port, close: () => stopServer(server, agent.timers, closeWithinMs) }
  } catch (error) {
    agent.log.warn({ err: error, code: 'metrics_port' }, 'metrics are not shown: the address cannot be listened on')
    return { port: null, close: () => Promise.resolve() }
  }
}

/** Asked for by any other name: a page in a browser of this machine, whose name was made to lead here. */
const ownName = /^(?:127(?:\.\d{1,3}){3}|\[::1\]|localhost)(?::\d{1,5})?$/i

const statusOf = ({ method, url, headers }: HttpRequest): number => {
  if (!ownName.test(headers.host ?? 'localhost')) return 421
  if (url !== '/metrics') return 404
  return method === 'GET' || method === 'HEAD' ? 200 : 405
}

const metricsServer = (agent: Showing): HttpServer => {
  const server = createHttpServer((request, response) => {
    const status = statusOf(request)
    response.writeHead(status, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' })
    response.end(status === 200 ? metricsText(metricFacts(agent)) : '')
  })
  boundServer(server, {
    connections: mostConnections,
    perSource: null,
    perCaller: null,
    timers: agent.timers,
    onCut: (reason, source) => agent.log.debug({ code: reason, from: source }, 'a connection for metrics was closed'),
    unreadable,
  })
  return server
}
