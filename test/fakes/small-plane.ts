// Just enough of a plane to answer one agent: real TLS, real certificates, real WebSockets, no rules and no store.
// Tests say what it answers. Enrollment has a port of its own, because the other one insists on a client certificate.

import * as https from 'node:https'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { WebSocketServer, type WebSocket } from 'ws'
import { placeOrder } from '#domain/core/certificate.ts'
import { parseCsr } from '#pki/csr.ts'
import { generateKey } from '#pki/keys.ts'
import { toPem } from '#pki/pem.ts'
import { leafSpec } from '#pki/authority-certificates.ts'
import { buildCertificate } from '#pki/certificate.ts'
import type { JoinString } from '#wire/core/join-string.ts'
import type { AgentProfile, EndpointSet } from '#wire/identity/identity-api.ts'
import type { EnrollRequest } from '#wire/enrollment/enroll-api.ts'
import type { ErrorBody } from '#wire/core/error-body.ts'
import { cleanup, type Scope } from '../process/cleanup.ts'
import { hierarchy, leaf, serial, serverOrder, type Hierarchy } from '../vectors/pki-hierarchy.ts'

export type Reply = { readonly status: number; readonly body: object }

export type SmallPlane = {
  readonly join: JoinString
  readonly authorities: Hierarchy
  readonly endpoints: EndpointSet
  readonly profile: { -readonly [K in keyof AgentProfile]: AgentProfile[K] }
  /** Every request that arrived, oldest first. */
  readonly calls: { path: string; body: Record<string, unknown>; serial: string | null }[]
  readonly channels: {
    socket: WebSocket
    headers: IncomingMessage['headers']
    serial: string
    frames: { type: string; body: Record<string, unknown> }[]
  }[]
  /** Takes the place of the usual answer while it returns something. `lost`: the reply never arrives. */
  intercept: (path: string) => Reply | 'lost' | null
  refuseChannel: Reply | null
  /** Of channels that are opened from now on. */
  answerPings: boolean
  /** What its hello offers on channels that are opened from now on. */
  capabilities: string[]
  /** Fields that take the place of the usual ones in the answer to an enrollment. */
  enrollAnswer: object
  sendOn(channel: number, type: string, body: object): void
  revision: number
}

export const refusal = (
  status: number,
  code: string,
  retryAfterMs: number | null = null,
  more: Partial<ErrorBody> = {},
): Reply => ({
  status,
  body: { code, message: `${code} it is.`, detail: null, next: 'do something', retry_after_ms: retryAfterMs, ...more },
})

/** `admits`: the network before the enrollment lets only holders of a certificate of this root through. */
export const startSmallPlane = async (t: Scope, nowMs: number, admits: string | null = null): Promise<SmallPlane> => {
  const authorities = hierarchy('p256', nowMs)
  const key = generateKey('p256')
  const server = leaf(key, serverOrder(key, { issuedAtMs: nowMs }), authorities.issuing)
  const pems = [server, authorities.issuing, authorities.domainCa, authorities.root].map(({ certificate }) =>
    toPem('CERTIFICATE', certificate.der),
  )
  const rootPem = pems[3] ?? ''
  const issuedBefore = new Map<string, string>()
  const tls = { key: key.pkcs8Pem(), cert: pems.join(''), minVersion: 'TLSv1.3' } as const
  const answer = (request: IncomingMessage, response: ServerResponse): void => void reply(request, response)
  const gate = admits === null ? {} : { requestCert: true, ca: admits }
  const open = https.createServer({ ...tls, ...gate }, answer)
  // An agent shows its leaf alone, which a plane knows from its store: here its issuers are known.
  const mutual = https.createServer({ ...tls, requestCert: true, ca: pems.slice(1) }, answer)
  const ports = await Promise.all([open, mutual].map((each) => listen(t, each)))

  const plane: SmallPlane = {
    join: {
      url: `https://localhost:${ports[0]}`,
      domain: 'example.test',
      rootFingerprint: authorities.root.certificate.sha256,
      secret: `enroll_${'a'.repeat(43)}`,
      marked: false,
    },
    authorities,
    endpoints: {
      id: 'runtime',
      revision: 1,
      runtime: [`https://localhost:${ports[1]}`],
      stream: [`wss://localhost:${ports[1]}`],
    },
    profile: {
      name: 'gpu-cloud',
      key_storage: 'file',
      key_types: ['p256'],
      lifetime_ms: 86_400_000,
      renew_from: 0.5,
      renew_to: 0.6,
    },
    calls: [],
    channels: [],
    intercept: () => null,
    refuseChannel: null,
    answerPings: true,
    capabilities: [],
    enrollAnswer: {},
    revision: 1,
    sendOn(channel, type, body) {
      const seq = (plane.revision += 1)
      plane.channels[channel]?.socket.send(JSON.stringify({ stream: 0, seq, ack: 0, type, body }))
    },
  }
  const { endpoints } = plane

  const chainFor = (csrPem: string): string => {
    const before = issuedBefore.get(csrPem)
    if (before !== undefined) return before
    const csr = parseCsr(csrPem)
    if (csr.kind === 'malformed') throw new Error(csr.why)
    const order = placeOrder({
      id: 'order',
      subject: { cn: 'node-gpu-001', o: 'example.test', ou: 'nodes' },
      uriSans: [],
      dnsSans: [],
      ipSans: [],
      usage: 'client',
      publicKey: csr.spki,
      issuedAtMs: Date.now(),
      lifetimeMs: plane.profile.lifetime_ms,
      aiaUrl: null,
      cdpUrl: null,
      for: { kind: 'node', node: 'gpu-001', epoch: 1 },
    })
    const der = buildCertificate(leafSpec(order, authorities.issuing.certificate, serial()), authorities.issuing.key)
    const chain = [toPem('CERTIFICATE', der), pems[1], pems[2]].join('')
    issuedBefore.set(csrPem, chain)
    return chain
  }

  const usualAnswer = (path: string, body: Partial<EnrollRequest>): object => {
    const server_time = new Date().toISOString()
    if (path.endsWith('/confirm')) return { node_id: 'gpu-001', membership: 'active', server_time }
    const certificate_chain = chainFor(body.csr ?? '')
    const renewed = { certificate_chain, roots: [rootPem], profile: plane.profile, endpoints, server_time }
    if (path.endsWith('/renew')) return renewed
    const names = { node_id: 'gpu-001', domain: 'example.test', epoch: 1, vcluster: null }
    return { ...renewed, ...names, liveness_grace_ms: 300_000, understands: [], ...plane.enrollAnswer }
  }

  const reply = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = request.url ?? ''
    const body = await jsonOf(request)
    // A plane from before there was recovery: agents ask, and go on without it.
    const unknown = path === '/v1/challenge' ? (plane.intercept(path) ?? refusal(404, 'NOT_FOUND')) : null
    if (unknown !== null && unknown !== 'lost') return send(response, unknown)
    plane.calls.push({ path, body, serial: serialOf(request) })
    const instead = plane.intercept(path) ?? (request.method === 'POST' ? null : refusal(404, 'NOT_FOUND'))
    // Decided and signed before the reply is lost, as it would be in a plane that dies after its commit.
    const usual = instead === null || instead === 'lost' ? usualAnswer(path, body) : null
    if (instead === 'lost') return void request.socket.destroy()
    send(response, instead ?? { status: 200, body: usual ?? {} })
  }

  const sockets = new WebSocketServer({ noServer: true, autoPong: false, handleProtocols: () => 'muster.v1' })
  mutual.on('upgrade', (request: IncomingMessage, socket, head) => {
    if (plane.refuseChannel !== null) {
      const { status, body } = plane.refuseChannel
      const text = JSON.stringify(body)
      return void socket.end(
        `HTTP/1.1 ${status} No\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\nconnection: close\r\n\r\n${text}`,
      )
    }
    sockets.handleUpgrade(request, socket, head, (webSocket) => {
      const channel: SmallPlane['channels'][number] = {
        socket: webSocket,
        headers: request.headers,
        serial: serialOf(request) ?? '',
        frames: [],
      }
      plane.channels.push(channel)
      webSocket.on('error', () => undefined)
      if (plane.answerPings) webSocket.on('ping', (payload) => webSocket.pong(payload))
      webSocket.on('message', (data: Buffer) => channel.frames.push(JSON.parse(data.toString('utf8'))))
      plane.sendOn(plane.channels.length - 1, 'hello', {
        server_time: new Date().toISOString(),
        session: plane.channels.length,
        capabilities: plane.capabilities,
        ping_every_ms: 20_000,
      })
    })
  })
  return plane
}

const send = (response: ServerResponse, { status, body }: Reply): void =>
  void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))

const listen = async (t: Scope, server: https.Server): Promise<number> => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const open = new Set<TLSSocket>()
  server.on('secureConnection', (socket: TLSSocket) => {
    open.add(socket)
    socket.on('close', () => open.delete(socket))
  })
  cleanup(t, async () => {
    for (const socket of open) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return (server.address() as AddressInfo).port
}

const serialOf = (request: IncomingMessage): string | null =>
  (request.socket as TLSSocket).getPeerX509Certificate()?.serialNumber.toLowerCase().replace(/^0+/, '') ?? null

const jsonOf = async (request: IncomingMessage): Promise<Record<string, unknown>> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return JSON.parse(Buffer.concat(chunks).toString('utf8') || '{}') as Record<string, unknown>
}
