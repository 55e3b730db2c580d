// The least that a CA on Node can do for an identity: TLS as the plane speaks it, a request that is parsed, its proof of possession,
// a signature, one row that is durable before the answer, in groups that gather as those of the plane do. No registry, no token, no
// journal, no limits: what Muster costs beyond it is Muster's own.

import type { ServerResponse } from 'node:http'
import * as path from 'node:path'
import { placeOrder } from '#domain/core/certificate.ts'
import { systemClock } from '#platform/clock.ts'
import { listenTcp } from '#platform/http-server.ts'
import { systemRandom } from '#platform/random.ts'
import { openDatabase } from '#platform/sqlite.ts'
import { systemTimers } from '#platform/timers.ts'
import { createTlsServer } from '#platform/tls-server.ts'
import { parseCsr } from '#pki/csr.ts'
import { toPem } from '#pki/pem.ts'
import { signLeaf } from '#plane/authority/ca-signer.ts'
import { gatherCommits } from '#plane/store/commit/gather-commits.ts'
import { makeIntermediate, makeRoot } from '#plane/authority/make-issuer.ts'
import { localServerIdentity } from '../../test/process/local-tls-server.ts'

const hour = 3_600_000
const [folder = '.'] = process.argv.slice(2)

const making = { domain: 'bench', custody: 'file', lifetimeMs: 1000 * hour, random: systemRandom } as const
const root = makeRoot({ ...making, nowMs: Date.now(), pathLen: 1 })
const issuing = makeIntermediate('issuing', root, { ...making, nowMs: Date.now() })
const issuingPem = toPem('CERTIFICATE', issuing.certificate.der)

const database = openDatabase(path.join(folder, 'smallest.db'), 1000)
database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
database.exec('CREATE TABLE certificate (serial TEXT PRIMARY KEY, doc TEXT NOT NULL) STRICT')
const insert = database.prepare('INSERT INTO certificate VALUES (?, ?)')

type Waiting = { readonly response: ServerResponse; readonly serial: string; readonly der: string }
let waiting: Waiting[] = []

const commit = (): void => {
  const group = waiting
  waiting = []
  database.exec('BEGIN IMMEDIATE')
  for (const { serial, der } of group) insert.run(serial, JSON.stringify({ serial, der }))
  database.exec('COMMIT')
  for (const { response, der } of group) {
    const leaf = toPem('CERTIFICATE', Buffer.from(der, 'base64'))
    const answer = JSON.stringify({ certificate_chain: leaf + issuingPem })
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': answer.length })
    response.end(answer)
  }
}

const sign = (csr: string, response: ServerResponse): void => {
  const parsed = parseCsr(csr)
  if (parsed.kind === 'malformed') throw new Error(parsed.why)
  const order = placeOrder({
    id: 'bench',
    subject: { cn: 'node', o: 'bench', ou: 'nodes' },
    uriSans: ['spiffe://bench/node/node'],
    dnsSans: [],
    ipSans: [],
    usage: 'client',
    publicKey: parsed.spki,
    issuedAtMs: Date.now(),
    lifetimeMs: 24 * hour,
    aiaUrl: null,
    cdpUrl: null,
    for: { kind: 'node', node: 'node', epoch: 1 },
  })
  const { serial, der } = signLeaf(issuing, order, systemRandom)
  waiting.push({ response, serial, der })
  if (waiting.length === 1) gatherCommits({ clock: systemClock, timers: systemTimers }, () => false, commit)
}

const identity = localServerIdentity()
const server = createTlsServer({ ...identity, clientRoots: null, rejectUnauthorized: true }, (request, response) => {
  let text = ''
  request.setEncoding('utf8')
  request.on('data', (part: string) => (text += part))
  request.on('end', () => sign((JSON.parse(text) as { csr: string }).csr, response))
})

const roots = `${identity.chainPem}${toPem('CERTIFICATE', root.certificate.der)}`
console.log(JSON.stringify({ port: await listenTcp(server, '127.0.0.1', 0), roots }))
