// Ruling 16: a server that is not the plane of the join string gets a handshake and not one byte more.

import assert from 'node:assert/strict'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { planeMark } from '#domain/core/plane-mark.ts'
import * as tls from 'node:tls'
import { openJudgedConnection, shownToPlane, type ClientCertificate } from '#agent/link/verified-connection.ts'
import { generateKey } from '#pki/keys.ts'
import { toPem } from '#pki/pem.ts'
import { systemTimers } from '#platform/timers.ts'
import { formatJoinString } from '#wire/core/join-string.ts'
import { manualClock } from '../fakes/manual-clock.ts'
import { runTestAgent, testAgentConfig } from '../fakes/test-agent.ts'
import { cleanup } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import { day, hierarchy, leaf, nodeOrder, serverOrder, type Held } from '../vectors/pki-hierarchy.ts'

const nowMs = Date.now()
// Old enough that a certificate of theirs may have expired.
const ours = hierarchy('p256', nowMs - 100 * day)
const theirs = hierarchy('p256', nowMs - 100 * day)
const fingerprint = ours.root.certificate.sha256

const server = (change: Parameters<typeof serverOrder>[1], issuer: Held = ours.issuing): Held => {
  const key = generateKey('p256')
  return leaf(key, serverOrder(key, { issuedAtMs: nowMs, ...change }), issuer)
}

const pemOf = (chain: readonly Held[]): string =>
  chain.map(({ certificate }) => toPem('CERTIFICATE', certificate.der)).join('')

type Listening = { readonly url: URL; handshakes: number; bytes: number }

const listen = async (
  t: TestContext,
  held: Held,
  above: readonly Held[],
  maxVersion?: 'TLSv1.2',
): Promise<Listening> => {
  const cert = pemOf([held, ...above])
  const listener = tls.createServer({ key: held.key.pkcs8Pem(), cert, ...(maxVersion ? { maxVersion } : {}) })
  const open = new Set<tls.TLSSocket>()
  const seen: Listening = { url: new URL('https://localhost'), handshakes: 0, bytes: 0 }
  listener.on('secureConnection', (socket) => {
    seen.handshakes += 1
    open.add(socket)
    socket.on('error', () => undefined)
    socket.on('data', (data: Buffer) => (seen.bytes += data.length))
  })
  listener.on('tlsClientError', () => undefined)
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  cleanup(t, async () => {
    for (const socket of open) socket.destroy()
    await new Promise((resolve) => listener.close(resolve))
  })
  seen.url.port = String((listener.address() as AddressInfo).port)
  return seen
}

const chainOf = ({ issuing, domainCa, root }: typeof ours): Held[] => [issuing, domainCa, root]
const never = new AbortController().signal
const mark = { uri: planeMark('example.test'), required: false }
const openVerified = (url: URL, atMs = nowMs, signal = never, client: ClientCertificate | null = null) => {
  const trust = { kind: 'fingerprint', rootFingerprint: fingerprint } as const
  return openJudgedConnection(
    manualClock(atMs),
    systemTimers,
    {
      ...{ url, trust, mark, name: 'required', withdrawn: [], purpose: 'runtime', timeoutMs: 10_000 },
      client,
    },
    signal,
  )
}

test('the plane of the join string is recognised by its root', async (t) => {
  const listening = await listen(t, server({}), chainOf(ours))
  const opened = await openVerified(listening.url)
  assert.equal(opened.kind, 'verified')
  if (opened.kind !== 'verified') return
  assert.deepEqual(Buffer.from(opened.root), Buffer.from(ours.root.certificate.der))
  // The control: what the tests below find to be nothing would have been counted.
  opened.socket.write('something')
  await eventually('the bytes to arrive', () => listening.bytes === 9)
  opened.socket.destroy()
})

const impostors: readonly { what: string; held: Held; above: Held[]; code: string; ahead?: number }[] = [
  {
    what: 'a server under another root',
    held: server({}, theirs.issuing),
    above: chainOf(theirs),
    code: 'server_tls_untrusted',
  },
  {
    what: 'a server that does not send its root',
    held: server({}),
    above: chainOf(ours).slice(0, 2),
    code: 'server_tls_untrusted',
  },
  {
    what: 'a server under another root that sends ours too',
    held: server({}, theirs.issuing),
    above: [theirs.issuing, theirs.domainCa, ours.root],
    code: 'server_tls_untrusted',
  },
  {
    what: 'a server with a certificate for another host',
    held: server({ dnsSans: ['elsewhere.test'], ipSans: [] }),
    above: chainOf(ours),
    code: 'server_name_wrong',
  },
  {
    what: 'a node of ours that poses as the plane',
    held: server({ usage: 'client' }),
    above: chainOf(ours),
    code: 'server_tls_untrusted',
  },
  {
    what: 'a program of ours that poses as the plane',
    held: server({ uriSans: ['spiffe://example.test/node/gpu-001/program/web'] }),
    above: chainOf(ours),
    code: 'server_tls_untrusted',
  },
  {
    what: 'a server whose certificate has expired',
    held: server({ issuedAtMs: nowMs - 91 * day }),
    above: chainOf(ours),
    code: 'clock_skew',
  },
  {
    what: 'the plane, seen with a clock that is years behind',
    held: server({}),
    above: chainOf(ours),
    code: 'clock_skew',
    ahead: -2000 * day,
  },
]

for (const { what, held, above, code, ahead } of impostors) {
  test(`${what} is sent nothing`, async (t) => {
    const listening = await listen(t, held, above)
    const opened = await openVerified(listening.url, nowMs + (ahead ?? 0))
    assert.equal(opened.kind, 'untrusted')
    assert.equal(opened.kind === 'untrusted' && opened.trouble.code, code)
    assert.equal(listening.bytes, 0)
  })

  test(`an agent that meets ${what} ends and has sent nothing, not even its token`, async (t) => {
    const listening = await listen(t, held, above)
    const join = {
      url: listening.url.origin,
      domain: 'example.test',
      rootFingerprint: fingerprint,
      secret: `enroll_${'s'.repeat(43)}`,
      marked: false,
    }
    assert.ok(formatJoinString(join).includes('enroll_'))
    const outcome = await runTestAgent(t, testAgentConfig(t, join, {}), ahead ?? 0).outcome
    assert.equal(outcome.kind === 'untrusted' && outcome.trouble.code, code)
    // Whatever was on its way has arrived once a later connection has been closed by the server's side.
    await new Promise((resolve) => tls.connect({ port: Number(listening.url.port), ca: [] }).on('error', resolve))
    assert.equal(listening.bytes, 0)
  })
}

test('clock_skew names the time the server is valid and the time here', async (t) => {
  const listening = await listen(t, server({ issuedAtMs: nowMs - 91 * day }), chainOf(ours))
  const opened = await openVerified(listening.url)
  assert.equal(opened.kind, 'untrusted')
  if (opened.kind !== 'untrusted') return
  const times = opened.trouble.text.match(/\d{4}-\d\d-\d\dT[\d:.]+Z/g) ?? []
  assert.equal(times.length, 3)
  assert.equal(times[2], new Date(nowMs).toISOString())
})

test('TLS 1.2 is not spoken', async (t) => {
  const listening = await listen(t, server({}), chainOf(ours), 'TLSv1.2')
  const opened = await openVerified(listening.url)
  assert.equal(opened.kind, 'unreachable')
  assert.equal(listening.handshakes, 0)
})

test('a server that never finishes its handshake does not hold a stopping agent', async (t) => {
  const { createServer } = await import('node:net')
  const silent = createServer(() => undefined)
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  cleanup(t, () => void silent.close())
  const stopping = new AbortController()
  const url = new URL(`https://localhost:${(silent.address() as AddressInfo).port}`)
  const opening = openVerified(url, nowMs, stopping.signal)
  setImmediate(() => stopping.abort())
  assert.deepEqual(await opening, { kind: 'stopped' })
})

test('a plane is sent the leaf of an identity and no issuer', async (t) => {
  const held = server({})
  const options = { key: held.key.pkcs8Pem(), cert: pemOf([held, ...chainOf(ours)]), requestCert: true }
  let verified = 0
  // It trusts the root alone, so it verifies a leaf only if the issuer comes with it.
  const listener = tls.createServer({ ...options, ca: pemOf([theirs.root]) }, (socket) => {
    verified++
    socket.on('error', () => undefined).end()
  })
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  cleanup(t, async () => {
    await new Promise((resolve) => listener.close(resolve))
  })
  const url = new URL(`https://localhost:${(listener.address() as AddressInfo).port}`)
  const key = generateKey('p256')
  const own = leaf(key, nodeOrder(key, { issuedAtMs: nowMs }), theirs.issuing)
  const whole = { chainPem: pemOf([own, theirs.issuing, theirs.domainCa]), keyPem: key.pkcs8Pem() }
  const showing = async (client: ClientCertificate): Promise<number> => {
    const connection = await openVerified(url, nowMs, never, client)
    if (connection.kind === 'verified')
      await new Promise((resolve) =>
        connection.socket
          .on('error', () => undefined)
          .once('close', resolve)
          .resume(),
      )
    return verified
  }
  assert.equal(await showing(shownToPlane(whole)), 0)
  assert.equal(await showing({ certPem: whole.chainPem, keyPem: whole.keyPem }), 1)
})
