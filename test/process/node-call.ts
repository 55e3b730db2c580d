// One call of the node plane over a TLS connection of its own, the server verified by the domain's roots.

import * as https from 'node:https'
import * as net from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import { evidenceHeader, formatEvidence, type AgentEvidence } from '#wire/core/agent-evidence.ts'
import { readReply, type Reply } from './operator-call.ts'

export type NodeTarget = {
  /** `https://HOST:PORT` of the plane, or of a fault proxy before it. */
  readonly url: string
  /** PEM. */
  readonly roots: readonly string[]
}

/** What a node presents: private key and certificate chain, PEM. */
export type Identity = { readonly keyPem: string; readonly chainPem: string }

export const tlsOptions = (target: NodeTarget, identity: Identity | null): ConnectionOptions => {
  const url = new URL(target.url)
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  return {
    host,
    port: Number(url.port),
    ca: [...target.roots],
    minVersion: 'TLSv1.3',
    ...(net.isIP(host) === 0 ? { servername: host } : {}),
    ...(identity === null ? {} : { key: identity.keyPem, cert: identity.chainPem }),
  }
}

/** Rejects where the connection fails; a refusal is a reply. */
export const nodeCall = (
  target: NodeTarget,
  identity: Identity | null,
  method: 'GET' | 'POST',
  path: string,
  body?: object,
  evidence: AgentEvidence | null = null,
): Promise<Reply> =>
  new Promise((resolve, reject) => {
    const text = body === undefined ? null : JSON.stringify(body)
    const request = https.request({
      ...tlsOptions(target, identity),
      agent: false,
      method,
      path,
      timeout: 60_000,
      headers: {
        host: new URL(target.url).host,
        ...(evidence === null ? {} : { [evidenceHeader]: formatEvidence(evidence) }),
        ...(text === null ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
      },
    })
    request.on('timeout', () => request.destroy(new Error(`${method} ${path}: no answer`)))
    request.on('error', reject)
    request.on('response', (response) => resolve(readReply(response)))
    request.end(text ?? undefined)
  })
