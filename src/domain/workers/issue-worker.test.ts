import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  alice,
  domainRow,
  doubtedDomainRow,
  haltedDomainRow,
  hour,
  noonMs,
  row,
  slot,
} from '../../../test/fakes/sample-rows.ts'
import { expectDecided, expectRefused, writesOf } from '../../../test/fakes/expect-decision.ts'
import type { CertificateRow, IssuedCertificate } from '#domain/core/certificate.ts'
import { forbids } from '#domain/core/cut-off.ts'
import type { WorkerPrincipal } from '#domain/core/principal.ts'
import { decideWorker, workerIssued, type WorkerFacts } from './issue-worker.ts'
import { decideRevokeWorker } from './revoke-worker.ts'
import {
  isOfIssuer,
  judgeWorkerCertificate,
  workerEndsMs,
  type PresentedWorkerCertificate,
  type Worker,
} from './worker.ts'
import { decideAddWorkerIssuer, type WorkerIssuer } from './worker-issuer.ts'

const pod = '5f0c5d9e-9d3a-4c64-8f1b-0a4d8f6c7b21'
const id = `east.${pod}`
const issuer: WorkerIssuer = {
  ...{ name: 'east', iss: 'https://cluster.example', aud: 'muster', sub: 's', keys: { kind: 'file', document: '{}' } },
  ...{ types: [], vclusters: [], createdAtMs: 0, createdBy: 'operator:carol', removedAtMs: null },
}
const slotAt = (serial: string, issuedAtMs: number) =>
  slot(serial, { issuer: 'wca', spki: `key of ${serial}`, issuedAtMs, notAfterMs: issuedAtMs + 24 * hour })

const worker: Worker = {
  ...{
    id,
    issuer: 'east',
    instance: pod,
    iss: issuer.iss,
    sub: issuer.sub,
    issuerSinceMs: 0,
    enrolledAtMs: noonMs - hour,
  },
  ...{ current: slotAt('b2', noonMs - hour), former: null, revoked: null },
  tokens: [{ hash: 't1', spki: 'key of b2', untilMs: noonMs + hour }],
}

const principal: WorkerPrincipal = {
  ...{ kind: 'worker', id, issuer: 'east', notAfterMs: worker.current.notAfterMs, source: '192.0.2.7' },
  credential: { by: 'certificate', issuer: 'wca', serial: 'b2', spki: 'key of b2' },
}

const keyOf = (spkiHash: string, keyType: 'ed25519' | 'p384' = 'ed25519') =>
  ({ kind: 'key', keyType, spki: new Uint8Array([1]), spkiHash }) as const

const facts = (changes: Partial<WorkerFacts> = {}): WorkerFacts => ({
  issuer: row(issuer),
  token: { kind: 'token', instance: pod, hash: 't2', expiresAtMs: noonMs + hour },
  renewing: null,
  worker: null,
  domain: domainRow(),
  key: keyOf('new'),
  keyBan: null,
  keyClaim: null,
  ordered: null,
  withdrawn: [],
  orderId: 'o1',
  by: alice,
  nowMs: noonMs,
  ...changes,
})
const known = { worker: row(worker) }
const renewing = { ...known, renewing: principal }

const outcome = (changes: Partial<WorkerFacts>): string => {
  const verdict = decideWorker(facts(changes))
  return verdict.kind === 'refused' ? verdict.code : verdict.kind
}

const issued: IssuedCertificate = {
  ...{ issuer: 'wca', serial: 'c3', spki: 'new', sha256: 'f3', issuedAtMs: noonMs, notAfterMs: noonMs + 24 * hour },
  ...{ der: '', order: 'o1' },
}

const written = (changes: Partial<WorkerFacts>) => {
  const verdict = decideWorker(facts(changes))
  assert.ok(verdict.kind === 'admitted', JSON.stringify(verdict))
  return { ...workerIssued(verdict, issued), order: verdict.order }
}

test('what is ordered for a worker is for clients, for a day, and carries no name but its own', () => {
  const { order, change } = written({})
  assert.deepEqual(order.subject, { cn: `worker-provisioning-${pod}`, o: domainRow().value.name, ou: 'workers' })
  assert.deepEqual([order.usage, order.lifetimeMs], ['client', 24 * hour])
  assert.deepEqual([order.uriSans, order.dnsSans, order.ipSans], [[], [], []])
  assert.deepEqual(order.for, { kind: 'worker', worker: id })
  assert.deepEqual(
    change.reads.map(({ row: kind }) => kind),
    ['worker', 'worker-issuer', 'domain', 'key-ban', 'key-claim'],
  )
})

test('a token holds for the first key it is brought with, and a repeated request gets what it got', () => {
  assert.equal(outcome({ ...known, token: { ...facts().token, hash: 't1' } }), 'WORKER_TOKEN_USED')
  assert.equal(outcome({ ...known, token: { ...facts().token, hash: 't1' }, key: keyOf('key of b2') }), 'repeat')
  assert.equal(outcome({ ...known, key: keyOf('key of b2') }), 'repeat')
  // Of a withdrawn authority, and in the second half of its life, it is signed anew.
  assert.equal(outcome({ ...known, key: keyOf('key of b2'), withdrawn: ['wca'] }), 'admitted')
  assert.equal(outcome({ ...known, key: keyOf('key of b2'), nowMs: noonMs + 12 * hour }), 'admitted')
})

test('a new token that comes with the key of before is bound to it, once', () => {
  const verdict = decideWorker(facts({ ...known, key: keyOf('key of b2') }))
  assert.ok(verdict.kind === 'repeat' && verdict.binding !== null)
  const { reads, writes, entries } = verdict.binding
  const [write] = writes
  assert.ok(write?.put === 'worker')
  assert.deepEqual(write.value, {
    ...worker,
    tokens: [...worker.tokens, { hash: 't2', spki: 'key of b2', untilMs: noonMs + hour }],
  })
  assert.deepEqual(
    [reads.map(({ row: kind }) => kind), entries.map(({ type }) => type)],
    [['worker', 'worker-issuer'], ['worker.token_bound']],
  )
  const after = { worker: row(write.value) }
  assert.equal(outcome({ ...after, key: keyOf('stolen with the token') }), 'WORKER_TOKEN_USED')
  const again = decideWorker(facts({ ...after, key: keyOf('key of b2') }))
  assert.ok(again.kind === 'repeat' && again.binding === null)
  // A pod that may ask for tokens at will does not make its row grow without bound either way.
  const tokens = Array.from({ length: 48 }, (_, at) => ({ hash: `h${at}`, spki: 'k', untilMs: noonMs + hour }))
  assert.equal(outcome({ worker: row({ ...worker, tokens }), key: keyOf('key of b2') }), 'RATE_LIMITED')
})

test('a renewal keeps the certificate before it, an enrollment denies it', () => {
  const renewed = written(renewing)
  assert.deepEqual([renewed.worker.current.serial, renewed.worker.former?.serial], ['c3', 'b2'])
  assert.equal(renewed.change.entries[0]?.type, 'worker.renewed')
  assert.equal(renewed.change.writes.filter(({ put }) => put === 'denial').length, 0)
  const anew = written(known)
  assert.equal(anew.worker.former, null)
  assert.deepEqual(
    anew.change.writes.flatMap((write) =>
      write.put === 'denial' && 'serial' in write.value ? [write.value.serial] : [],
    ),
    ['b2'],
  )
  const twice = written({ ...renewing, worker: row({ ...worker, former: slotAt('a1', noonMs - 13 * hour) }) })
  assert.equal(twice.change.writes.filter(({ put }) => put === 'denial').length, 1)
})

test('a renewal needs the certificate of the worker that the token names', () => {
  assert.equal(outcome({ ...renewing, key: keyOf('key of b2') }), 'admitted')
  assert.equal(outcome({ ...renewing, renewing: { ...principal, id: 'east.another-pod' } }), 'WORKER_TOKEN_OF_ANOTHER')
  assert.equal(outcome({ renewing: principal }), 'WORKER_TOKEN_OF_ANOTHER')
  assert.equal(outcome({ ...renewing, worker: row({ ...worker, sub: 'other' }) }), 'WORKER_TOKEN_OF_ANOTHER')
  const old = { ...principal, credential: { ...principal.credential, serial: 'a1' } }
  assert.equal(outcome({ ...known, renewing: old }), 'SERIAL_MISMATCH')
})

test('keys that are banned, another holder has, or are of another type are refused', () => {
  assert.equal(outcome({ keyBan: row({ spki: 'new', why: '', atMs: 0 }) }), 'KEY_BLOCKED')
  const claimedBy = (node: string) => row({ spki: 'new', holders: [{ node, use: 'tls' as const, sinceMs: 0 }] })
  assert.equal(outcome({ keyClaim: claimedBy('gpu-001') }), 'KEY_IN_USE')
  assert.equal(outcome({ keyClaim: claimedBy('worker:west.x') }), 'KEY_IN_USE')
  assert.equal(outcome({ keyClaim: claimedBy(`worker:${id}`) }), 'admitted')
  assert.equal(outcome({ key: keyOf('new', 'p384') }), 'CSR_INVALID')
  assert.equal(outcome({ key: { kind: 'malformed', why: 'x' } }), 'CSR_INVALID')
})

test('an issuer that is added again under the name of a removed one has none of its workers', () => {
  const add = (existing: WorkerIssuer | null, nowMs: number): WorkerIssuer =>
    expectDecided(
      decideAddWorkerIssuer({
        ...{
          name: 'east',
          existing: existing === null ? null : row(existing),
          all: [],
          issuers: [],
          asked: { ...issuer, signedBy: 'built-in' },
        },
        ...{ by: alice, nowMs },
      }),
    ).issuer
  const first = add(null, noonMs)
  // Also where the clock is set back to the very time of the first one.
  const second = add({ ...first, removedAtMs: noonMs + hour }, noonMs)
  assert.equal(second.createdAtMs > first.createdAtMs, true)
  const its = row({ ...worker, issuerSinceMs: first.createdAtMs })
  assert.equal(isOfIssuer(its.value, first), true)
  assert.equal(isOfIssuer(its.value, second), false)
  const anew = { worker: its, issuer: row(second) }
  assert.equal(outcome({ ...anew, renewing: principal }), 'WORKER_TOKEN_OF_ANOTHER')
  // Its pod may enroll, and then has a certificate of the new one.
  assert.equal(outcome({ ...anew, key: keyOf('key of b2') }), 'admitted')
  assert.equal(written(anew).worker.issuerSinceMs, second.createdAtMs)
})

const halt = { kind: 'halt', renewals: true, reason: 'x', by: alice } as const

test('nothing is issued in doubt, in a halt, for a removed issuer or to a revoked worker', () => {
  assert.equal(outcome({ domain: doubtedDomainRow() }), 'STORE_IN_DOUBT')
  assert.equal(outcome({ domain: haltedDomainRow(true) }), 'ISSUANCE_HALTED')
  assert.equal(outcome({ ...renewing, domain: haltedDomainRow(true) }), 'admitted')
  assert.equal(outcome({ ...renewing, domain: haltedDomainRow(false) }), 'ISSUANCE_HALTED')
  assert.equal(outcome({ issuer: row({ ...issuer, removedAtMs: 1 }) }), 'WORKER_TOKEN_INVALID')
  const revoked = { ...worker, revoked: { atMs: 1, by: 'x', reason: 'y' } }
  assert.equal(outcome({ worker: row(revoked) }), 'WORKER_REVOKED')
  assert.equal(forbids(halt, written({}).change), true)
  assert.equal(forbids(halt, written(renewing).change), false)
})

test('tokens that have ended are forgotten, and a worker cannot pile up those that hold', () => {
  const tokens = Array.from({ length: 48 }, (_, at) => ({ hash: `h${at}`, spki: 'k', untilMs: noonMs + hour }))
  assert.equal(outcome({ worker: row({ ...worker, tokens }) }), 'RATE_LIMITED')
  const ended = tokens.map((token) => ({ ...token, untilMs: noonMs - hour }))
  assert.deepEqual(
    written({ worker: row({ ...worker, tokens: ended }) }).worker.tokens.map(({ hash }) => hash),
    ['t2'],
  )
})

test('a revocation denies every certificate, bans the keys, and leaves a tombstone', () => {
  const both = { ...worker, former: slotAt('a1', noonMs - 13 * hour) }
  const revoke = (value: Worker) =>
    decideRevokeWorker({
      ...{
        worker: row(value),
        bans: new Map(),
        reason: 'left',
        receiptId: 'r1',
        toleranceMs: 0,
        by: alice,
        nowMs: noonMs,
      },
    })
  const verdict = expectDecided(revoke(both))
  assert.equal(writesOf(verdict, 'denial').length, 2)
  assert.equal(writesOf(verdict, 'key-ban').length, 2)
  assert.equal(workerEndsMs(verdict.worker), null)
  assert.deepEqual(verdict.receipt.certificates, ['wca/b2', 'wca/a1'])
  expectRefused(revoke(verdict.worker), 'WORKER_REVOKED')
})

test('a certificate authenticates its worker only while nothing of it has ended', () => {
  const presented: CertificateRow = {
    ...worker.current,
    ...{ subject: { kind: 'worker', worker: id }, der: '', order: 'o', renews: null },
  }
  const judged = (changes: Partial<PresentedWorkerCertificate> = {}): string => {
    const verdict = judgeWorkerCertificate({
      ...{ row: presented, worker, issuer, byWorkersAuthority: true, denied: false, keyBanned: false },
      ...{ issuerWithdrawn: false, source: 'x', toleranceMs: 0, nowMs: noonMs },
      ...changes,
    })
    return verdict.kind === 'refused' ? verdict.code : verdict.id
  }
  assert.equal(judged(), id)
  assert.equal(judged({ worker: null }), 'CLIENT_CERT_UNKNOWN')
  assert.equal(judged({ byWorkersAuthority: false }), 'CLIENT_CERT_UNKNOWN')
  assert.equal(judged({ worker: { ...worker, revoked: { atMs: 1, by: 'x', reason: 'y' } } }), 'WORKER_REVOKED')
  assert.equal(judged({ nowMs: worker.current.notAfterMs }), 'CLIENT_CERT_EXPIRED')
  for (const denied of [{ denied: true }, { keyBanned: true }, { issuerWithdrawn: true }, { issuer: null }])
    assert.equal(judged(denied), 'CLIENT_CERT_DENIED')
  assert.equal(judged({ issuer: { ...issuer, removedAtMs: 1 } }), 'CLIENT_CERT_DENIED')
  assert.equal(judged({ issuer: { ...issuer, sub: 'other' } }), 'CLIENT_CERT_DENIED')
  assert.equal(judged({ issuer: { ...issuer, createdAtMs: 1 } }), 'CLIENT_CERT_DENIED')
  assert.equal(judged({ worker: { ...worker, current: slotAt('c3', noonMs) } }), 'SERIAL_MISMATCH')
  assert.equal(judged({ nowMs: worker.current.issuedAtMs - 2 * hour }), 'CLIENT_CERT_DENIED')
})
