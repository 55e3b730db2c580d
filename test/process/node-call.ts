// One call of the node listener over a TLS connection of its own, the server verified by the domain's roots.

import * as https from 'node:https'
import * as net from 'node:net'
import { createSecureContext, type ConnectionOptions, type SecureContext } from 'node:tls'
import { evidenceHeader, formatEvidence, type AgentEvidence } from '#wire/core/agent-evidence.ts'
import { readReply, type Reply } from './operator-call.ts'

export type NodeTarget = {
  /** `https://HOST:PORT` of the plane, or of a fault proxy before it. */
  readonly url: string
  /** PEM. */
  readonly roots: readonly string[]
  /** An address of this machine that calls come from; left out: the usual one. */
  readonly from?: string
}

/** What a node presents: private key and certificate chain, PEM. */
export type Identity = { readonly keyPem: string; readonly chainPem: string }

/** By roots and identity (by the roots again where there is none). A fifth of a call is parsing what was parsed for the last. */
const contexts = new WeakMap<readonly string[], WeakMap<object, SecureContext>>()

const contextOf = ({ roots }: NodeTarget, identity: Identity | null): SecureContext => {
  const ofRoots = contexts.get(roots) ?? new WeakMap<object, SecureContext>()
  contexts.set(roots, ofRoots)
  const known = ofRoots.get(identity ?? roots)
  if (known !== undefined) return known
  const made = createSecureContext({ ca: [...roots], minVersion: 'TLSv1.3', ...presented(identity) })
  ofRoots.set(identity ?? roots, made)
  return made
}

const presented = (identity: Identity | null): { key?: string; cert?: string } =>
  identity === null ? {} : { key: identity.keyPem, cert: identity.chainPem }

/** The same as `tlsOptions`, but for options that a test would add: they have no effect. */
export const sharedTlsOptions = (target: NodeTarget, identity: Identity | null): ConnectionOptions => {
  const { host, port, servername } = tlsOptions(target, identity)
  const secureContext = contextOf(target, identity)
  return { host, port, secureContext, ...(servername === undefined ? {} : { servername }) }
}

export const tlsOptions = (target: NodeTarget, identity: Identity | null): ConnectionOptions => {
  const url = new URL(target.url)
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  return {
    host,
    port: Number(url.port),
    ca: [...target.roots],
    minVersion: 'TLSv1.3',
    ...(net.isIP(host) === 0 ? { servername: host } : {}),
    ...presented(identity),
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
      ...sharedTlsOptions(target, identity),
      ...(target.from === undefined ? {} : { localAddress: target.from }),
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
