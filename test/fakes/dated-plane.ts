// A plane that lives at a time of its own: its certificates and its statements are of that time. To it, an agent with the
// clock of this machine is the one that is wrong. It answers challenges and nothing else that matters.

import * as http from 'node:http'
import * as net from 'node:net'
import * as tls from 'node:tls'
import type { ServerTrust } from '#agent/link/verified-connection.ts'
import { generateKey, type PrivateKey } from '#pki/keys.ts'
import { toPem } from '#pki/pem.ts'
import { formatStatement } from '#wire/core/statement.ts'
import { cleanup, type Scope } from '../process/cleanup.ts'
import { hierarchy, leaf, nodeOrder, serverOrder, type Held, type Hierarchy } from '../vectors/pki-hierarchy.ts'

const day = 86_400_000

const statementKey = generateKey('p256')
export const pinned = {
  domain: 'example.test',
  statementKeys: [Buffer.from(statementKey.spki).toString('base64')],
}

/** What a plane of that time has. Its authorities were made a year before. */
export type Times = {
  readonly atMs: number
  readonly authorities: Hierarchy
  readonly trust: ServerTrust
  /** Of a node that was enrolled at that time. */
  readonly client: { readonly certPem: string; readonly keyPem: string }
}

export const timesAt = (atMs: number): Times => {
  const authorities = hierarchy('p256', atMs - 365 * day)
  const key = generateKey('p256')
  const node = leaf(key, nodeOrder(key, { issuedAtMs: atMs }), authorities.issuing)
  const above = [authorities.issuing, authorities.domainCa]
  return {
    atMs,
    authorities,
    trust: { kind: 'roots', roots: [pem(authorities.root)] },
    client: { certPem: [node, ...above].map(pem).join(''), keyPem: key.pkcs8Pem() },
  }
}

export const serverOf = ({ atMs, authorities }: Times, issuedAtMs = atMs): Held => {
  const key = generateKey('p256')
  return leaf(key, serverOrder(key, { issuedAtMs }), authorities.issuing)
}

export type DatedPlane = {
  readonly port: number
  readonly url: URL
  /** Every request, oldest first; whether it came with a client certificate. */
  readonly calls: { readonly path: string; readonly shown: boolean; readonly headers: http.IncomingHttpHeaders }[]
  connections: number
  /** What it answers to a question about the time, given the nonce. */
  challenge: (nonce: string) => string
  /** What it answers to everything else. */
  answer: object
}

export const statementOf = (
  nonce: string,
  atMs: number,
  by: PrivateKey = statementKey,
  node: string | null = null,
): string =>
  formatStatement('challenge', { domain: 'example.test', node, nonce, salt: 'x', time_ms: atMs }, (bytes) =>
    by.sign(bytes),
  )

export const startDatedPlane = async (
  t: Scope,
  times: Times,
  {
    held = serverOf(times),
    address = '127.0.0.1',
    port: wanted = 0,
  }: { readonly held?: Held; readonly address?: string; readonly port?: number } = {},
): Promise<DatedPlane> => {
  const { authorities, atMs } = times
  const chain = [held, authorities.issuing, authorities.domainCa, authorities.root]
  const cert = chain.map(pem).join('')
  const secureContext = tls.createSecureContext({ key: held.key.pkcs8Pem(), cert, minVersion: 'TLSv1.3' })
  const app = http.createServer((request, response) => {
    const shown = (request.socket as tls.TLSSocket).getPeerX509Certificate() !== undefined
    plane.calls.push({ path: request.url ?? '', shown, headers: request.headers })
    let body = ''
    request.on('data', (data: Buffer) => (body += data.toString('utf8')))
    request.on('end', () => {
      const { nonce = '' } = JSON.parse(body === '' ? '{}' : body) as { nonce?: string }
      const said = request.url?.endsWith('/v1/challenge') ? { challenge: plane.challenge(nonce) } : plane.answer
      response.end(JSON.stringify(said))
    })
  })
  const open = new Set<net.Socket>()
  const server = net.createServer((raw) => {
    plane.connections += 1
    open.add(raw)
    raw.on('error', () => undefined)
    // Like the node listener it asks for a client certificate, and leaves it to others to judge what comes.
    const socket = new tls.TLSSocket(raw, { isServer: true, requestCert: true, secureContext })
    socket.on('error', () => undefined)
    socket.once('secure', () => app.emit('connection', socket))
  })
  await new Promise<void>((resolve) => server.listen(wanted, address, resolve))
  cleanup(t, async () => {
    for (const socket of open) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  const { port } = server.address() as net.AddressInfo
  const plane: DatedPlane = {
    port,
    url: new URL(`https://localhost:${port}/v1/nodes/gpu-001/confirm`),
    calls: [],
    connections: 0,
    challenge: (nonce) => statementOf(nonce, atMs),
    answer: {},
  }
  return plane
}

const pem = ({ certificate }: Held): string => toPem('CERTIFICATE', certificate.der)
