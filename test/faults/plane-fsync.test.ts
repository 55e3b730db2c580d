// Nothing is answered before it is durable: seen from outside, in the plane's system calls.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as https from 'node:https'
import * as path from 'node:path'
import { test } from 'node:test'
import { makeCsr } from '#pki/csr.ts'
import { generateKey, spkiHash } from '#pki/keys.ts'
import { withPeer } from '../peers/peer.ts'
import { cleanup, type Scope } from '../process/cleanup.ts'
import { tlsOptions, type Identity, type NodeTarget } from '../process/node-call.ts'
import { readReply, type Reply } from '../process/operator-call.ts'
import { newSecret, targetByAddress } from '../process/plane-records.ts'
import { startPlane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { flushedBeforeReply, readStrace, type Question } from './strace-record.ts'

/** Strings long enough for a page of the database. */
const strace = (record: string): string[] => [
  ...['strace', '-D', '-f', '-ttt', '-yy', '-s', '5000', '-o', record],
  ...['-e', 'trace=fsync,fdatasync,write,writev,pwrite64,pwritev,sendto,sendmsg'],
]

const log = 'muster.db-wal'

/** One connection for several calls: behind the first of them no more of its handshake is to come. */
const keptConnection = (t: Scope, target: NodeTarget, identity: Identity | null) => {
  const { host, port, ...tls } = tlsOptions(target, identity)
  const agent = new https.Agent({ ...tls, keepAlive: true, maxSockets: 1 })
  cleanup(t, () => agent.destroy())
  return (method: string, where: string, body?: object): Promise<{ reply: Reply; localPort: number }> =>
    new Promise((resolve, reject) => {
      const text = body === undefined ? undefined : JSON.stringify(body)
      const headers = text === undefined ? {} : { 'content-type': 'application/json', 'content-length': text.length }
      const request = https.request({ agent, host, port, method, path: where, headers, timeout: 30_000 })
      request.on('timeout', () => request.destroy(new Error(`${method} ${where}: no answer`)))
      request.on('error', reject)
      request.on('response', (response) => {
        const { localPort = 0 } = response.socket
        readReply(response).then((reply) => resolve({ reply, localPort }), reject)
      })
      request.end(text)
    })
}

/** The record has microseconds: the first answer may have been written in the millisecond in which it was read. */
const nextMillisecond = async (): Promise<number> => {
  const nextMs = Date.now() + 1
  while (Date.now() < nextMs) await new Promise((resolve) => setImmediate(resolve))
  return nextMs
}

/** One call with a new key in it, and what to ask the record about it: the key's hash is in no earlier write. */
const traced = async (t: Scope, target: NodeTarget, identity: Identity | null, where: string, more: object) => {
  const key = generateKey('ed25519')
  const call = keptConnection(t, target, identity)
  const first = await call('GET', '/v1/bundle')
  const sinceMs = await nextMillisecond()
  const { reply, localPort } = await call('POST', where, { csr: makeCsr(key, 'node'), ...more })
  assert.equal(reply.status, 200, JSON.stringify(reply.body))
  assert.equal(localPort, first.localPort, 'the connection was not kept')
  const question: Question = { port: localPort, sinceMs, log, mark: spkiHash(key.spki) }
  return { question, identity: { keyPem: key.pkcs8Pem(), chainPem: String(reply.body.certificate_chain) } }
}

/** The same record, with the lines `moved` picks put behind everything else, or left out. */
const rearranged = (record: string, moved: (line: string) => boolean, to: 'end' | 'nowhere'): string => {
  const lines = record.split('\n')
  return [...lines.filter((line) => !moved(line)), ...(to === 'end' ? lines.filter(moved) : [])].join('\n')
}

test('an enrollment and a renewal are in the log, and the log is flushed, before the first byte of the reply', async (t) => {
  if (withPeer(t, 'strace') === null) return
  const file = path.join(tempFolder(t), 'strace')
  const plane = await startPlane(t, { wrapper: strace(file), readyWithinMs: 60_000 })
  const target = await targetByAddress(plane)
  const secret = await newSecret(plane, 'gpu-001')
  const enrolled = await traced(t, target, null, '/v1/enroll', { method: 'token', enrollment_token: secret })
  const renewed = await traced(t, target, enrolled.identity, '/v1/nodes/gpu-001/renew', {})
  await plane.stop()

  const record = fs.readFileSync(file, 'utf8')
  const isFlush = (line: string): boolean => /f(data)?sync\(/.test(line)
  for (const { question } of [enrolled, renewed]) {
    assert.equal(flushedBeforeReply(record, question), 'flushed before the reply')
    // The same calls in another order must not pass: else the line above proves nothing.
    for (const to of ['end', 'nowhere'] as const)
      assert.equal(flushedBeforeReply(rearranged(record, isFlush, to), question), 'replied before the flush')
    const isMarked = (line: string): boolean => line.includes(question.mark)
    assert.equal(flushedBeforeReply(rearranged(record, isMarked, 'end'), question), 'nothing written before the reply')
    assert.equal(flushedBeforeReply(record, { ...question, port: 1 }), 'no reply')
  }
})

const written = `7 100.1 pwrite64(9</d/muster.db-wal>, "..abc..", 4096, 0) = 4096`
const flushed = `7 100.2 fsync(9</d/muster.db-wal>) = 0`
const replied = `7 100.3 writev(5<TCP:[127.0.0.1:1->127.0.0.1:99]>, [{iov_base="\\27", iov_len=1}], 1) = 1`
const question: Question = { port: 99, sinceMs: 100_000, log, mark: 'abc' }

test('a record that shows a reply before its flush is found out', () => {
  const finding = (...lines: string[]) => flushedBeforeReply(lines.join('\n'), question)
  assert.equal(finding(written, flushed, replied), 'flushed before the reply')
  assert.equal(finding(written, replied, flushed), 'replied before the flush')
  assert.equal(finding(flushed, written, replied), 'replied before the flush')
  assert.equal(finding(written, flushed, written, replied), 'replied before the flush')
  assert.equal(finding(written, flushed.replace('= 0', '= -1 EIO'), replied), 'replied before the flush')
  assert.equal(finding(written, flushed.replace('-wal', ''), replied), 'replied before the flush')
  assert.equal(finding(replied, written, flushed), 'nothing written before the reply')
  assert.equal(finding(flushed, replied.replace('99', '98')), 'no reply')
  assert.equal(finding(written.replace('100.1', '99.9'), flushed, replied), 'nothing written before the reply')
})

test('a call printed in two parts counts from its begin to its end', () => {
  const begins = '7 100.2 fsync(9</d/muster.db-wal> <unfinished ...>'
  const other = '8 100.25 write(1<pipe:[3]>, "x", 1) = 1'
  const ends = '7 100.4 <... fsync resumed>) = 0'
  const finding = (...lines: string[]) => flushedBeforeReply(lines.join('\n'), question)
  assert.equal(finding(written, begins, other, ends, replied), 'flushed before the reply')
  assert.equal(finding(written, begins, other, replied.replace('7 ', '8 '), ends), 'replied before the flush')
  assert.deepEqual(
    readStrace([begins, other, ends].join('\n')).map((call) => [call.name, call.begins, call.ends]),
    [
      ['fsync', 0, 2],
      ['write', 1, 1],
    ],
  )
})
