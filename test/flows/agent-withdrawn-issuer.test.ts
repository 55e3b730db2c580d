// An attacker who has stolen the key of an intermediate can make a certificate for the plane's name that leads to our root. An
// agent that knows of the withdrawal sends such a server nothing, by either check.

import assert from 'node:assert/strict'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import * as tls from 'node:tls'
import type { Connected } from '#agent/link/connect-at.ts'
import { connectPlane } from '#agent/link/connect-plane.ts'
import type { Credentials } from '#agent/state/credentials.ts'
import type { PlaneFailure } from '#agent/link/plane-failure.ts'
import { generateKey } from '#pki/keys.ts'
import { toPem } from '#pki/pem.ts'
import { connectingAgent } from '../fakes/connecting-agent.ts'
import { cleanup } from '../process/cleanup.ts'
import { day, hierarchy, leaf, serverOrder, type Held } from '../vectors/pki-hierarchy.ts'

const nowMs = Date.now()
const ours = hierarchy('p256', nowMs - 10 * day)
const theirs = hierarchy('p256', nowMs - 10 * day)
const pem = ({ certificate }: Held): string => toPem('CERTIFICATE', certificate.der)
const idOf = ({ certificate }: Held): string => certificate.subjectKeyId ?? assert.fail()

/** Presents a certificate of this issuer, followed by these; counts what it is sent. */
const listen = async (t: TestContext, issuer: Held, above: readonly Held[]) => {
  const key = generateKey('p256')
  const held = leaf(key, serverOrder(key, { issuedAtMs: nowMs }), issuer)
  const server = tls.createServer({ key: key.pkcs8Pem(), cert: [held, ...above].map(pem).join('') })
  const seen = { url: new URL('https://localhost'), bytes: 0 }
  const open = new Set<tls.TLSSocket>()
  server.on('secureConnection', (socket) => {
    open.add(socket)
    socket.on('error', () => undefined)
    socket.on('data', (data: Buffer) => (seen.bytes += data.length))
  })
  server.on('tlsClientError', () => undefined)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanup(t, async () => {
    for (const socket of open) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  seen.url.port = String((server.address() as AddressInfo).port)
  return seen
}

const connect = async (
  t: TestContext,
  url: URL,
  withdrawn: readonly string[],
  trust: 'roots' | 'fingerprint',
): Promise<Connected | PlaneFailure> => {
  const agent = connectingAgent(t)
  const identity = { withdrawnIssuers: withdrawn, current: { issuedAtMs: 0 }, clockToleranceMs: 0, recovery: null }
  agent.keeper.keep({ identity, request: null } as unknown as Credentials)
  const known =
    trust === 'roots'
      ? ({ kind: 'roots', roots: [pem(ours.root)] } as const)
      : ({ kind: 'fingerprint', rootFingerprint: ours.root.certificate.sha256 } as const)
  const outcome = await connectPlane(
    agent,
    { url, trust: known, plane: { domain: 'example.test', marked: false }, client: null },
    new AbortController().signal,
  )
  if (outcome.kind === 'connected') outcome.socket.destroy()
  return outcome
}

const codeOf = (outcome: Connected | PlaneFailure): string =>
  outcome.kind === 'untrusted' ? String(outcome.trouble.evidence['code']) : outcome.kind

const above = [ours.issuing, ours.domainCa, ours.root]

for (const trust of ['roots', 'fingerprint'] as const) {
  test(`known by ${trust}: a server with a certificate of a withdrawn authority gets nothing`, async (t) => {
    const server = await listen(t, ours.issuing, above)
    assert.equal(codeOf(await connect(t, server.url, [], trust)), 'connected')
    assert.equal(codeOf(await connect(t, server.url, [idOf(theirs.issuing)], trust)), 'connected')
    assert.equal(codeOf(await connect(t, server.url, [idOf(ours.issuing)], trust)), 'withdrawn')
    assert.equal(codeOf(await connect(t, server.url, [idOf(ours.domainCa)], trust)), 'withdrawn')
    assert.equal(server.bytes, 0)
  })
}

test('certificates that only look like its issuer do not lead around it', async (t) => {
  // In front of the real one: a certificate with the issuer's name and another key, to be taken for it.
  const server = await listen(t, ours.issuing, [theirs.issuing, ...above, theirs.domainCa])
  assert.equal(codeOf(await connect(t, server.url, [], 'roots')), 'connected')
  const outcome = await connect(t, server.url, [idOf(ours.issuing)], 'roots')
  assert.equal(outcome.kind, 'untrusted')
  assert.equal(server.bytes, 0)
})
