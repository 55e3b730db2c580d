// Leaves of programs and certificates of workers that an outside issuer signs: what they carry, what is refused, what a crash leaves and what
// ends them.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { certificateKey } from '#domain/core/certificate.ts'
import { isRefusal } from '#domain/core/refusal.ts'
import { generateKey } from '#pki/keys.ts'
import { makeCsr } from '#pki/csr.ts'
import { issuerAndSerial, parseCertificate, type ParsedCertificate } from '#pki/parse-certificate.ts'
import { allFromPem, toPem } from '#pki/pem.ts'
import { keyId } from '#pki/spki.ts'
import { verifyIssuedChain } from '#pki/verify-chain.ts'
import { addNames } from '#plane/programs/change-names.ts'
import { issueProgram } from '#plane/programs/issue-program.ts'
import { revokeWorker } from '#plane/workers/revoke-worker.ts'
import { disableIssuer, retireIssuer } from '#plane/issuers/change-issuers.ts'
import { signerNames } from '#plane/core/outside-issuer-rows.ts'
import { openFeed } from '#plane/core/feed.ts'
import { openOutsideProgramRoots } from '#plane/issuers/program-roots.ts'
import { rootsHash } from '#pki/pem.ts'
import { eventually } from '../process/eventually.ts'
import { operator } from './authority-setup.ts'
import type { OutsidePlane } from './outside-setup.ts'
import { codeOfAnswer, day, east, given, newLeafCsr, openLeaves, setUpLeaves } from './outside-leaves-setup.ts'

type Setup = Awaited<ReturnType<typeof setUpLeaves>>

const web = { name: 'web', usage: 'both', dns: ['{name}'], addresses: true, issuer: 'corp' }

const parsed = (pem: string): ParsedCertificate => {
  const certificate = parseCertificate(allFromPem('CERTIFICATE', pem)?.[0] ?? new Uint8Array())
  assert.ok(certificate.kind === 'certificate')
  return certificate
}

/** A node with a name and an address, and an output that `corp` signs. */
const withOutput = async ({ plane, leaves }: Setup, output: object = web) => {
  given(await leaves.list(output))
  await plane.recoverable('gpu-1', generateKey('p256'))
  given(await addNames(plane.core, 'gpu-1', ['web.example', '10.0.0.7'], operator))
}

for (const takesSerial of [true, false])
  test(`a leaf carries what was registered for its node, below the root of an issuer with ${takesSerial ? 'serials of ours' : 'serials of its own'}`, async (t) => {
    const setup = await setUpLeaves(t, { takesSerial })
    const { plane, fake, leaves, clock } = setup
    await withOutput(setup)
    const csr = newLeafCsr()
    const answer = given(await leaves.ask('gpu-1', 'web', csr))
    const leaf = parsed(answer.certificate_chain)
    assert.deepEqual(
      [leaf.dnsNames, leaf.ips, leaf.uris],
      [['web.example'], ['10.0.0.7'], ['spiffe://test.example/node/gpu-1/program/web']],
    )
    assert.deepEqual([...leaf.extendedKeyUsage].sort(), ['clientAuth', 'serverAuth'])
    const root = toPem('CERTIFICATE', fake.root.certificate.der)
    assert.deepEqual(answer.outside_roots, [root])
    assert.ok(!answer.roots.includes(root), 'the programs root is another one')
    const chain = allFromPem('CERTIFICATE', answer.certificate_chain) ?? []
    const nowMs = clock.nowMs()
    assert.equal(verifyIssuedChain({ chain, roots: [fake.root.certificate.der], nowMs }).kind, 'trusted')

    // The same request gets the same bytes, and a new key the next leaf.
    assert.equal(given(await leaves.ask('gpu-1', 'web', csr)).certificate_chain, answer.certificate_chain)
    given(await leaves.ask('gpu-1', 'web'))
    assert.deepEqual(
      fake.asked.map(({ kind, purpose }) => [kind, purpose]),
      [
        ['output:web', 'enrollment'],
        ['output:web', 'renewal'],
      ],
    )
    const [program] = await plane.rows('program')
    assert.deepEqual(
      [program?.current?.serial, program?.former?.serial],
      fake.signed.map(({ serial }) => serial).reverse(),
    )
    assert.equal((await signerNames(plane.store))(program?.current?.issuer ?? ''), 'corp')
    assert.ok((await plane.orders()).every(({ state }) => state.kind === 'issued'))
    // It opens nothing: it is resolved to the row of a program.
    const { issuer, serial } = issuerAndSerial(chain[0] ?? new Uint8Array()) ?? assert.fail()
    const row = await plane.store.get('certificate', certificateKey(plane.book.idOf(issuer), serial))
    assert.equal(row?.value.subject.kind, 'program')
  })

test('an agent that does not say that it takes roots of issuers gets a leaf below the programs root', async (t) => {
  const setup = await setUpLeaves(t)
  await withOutput(setup)
  const { plane, fake, leaves } = setup
  const csr = newLeafCsr()
  given(await leaves.ask('gpu-1', 'web', csr, false))
  assert.equal(fake.asked.length, 0)
  const [program] = await plane.rows('program')
  assert.ok(leaves.programs.has(program?.current?.issuer ?? ''))
  // Upgraded, it repeats what was answered, and asks for the next one.
  given(await leaves.ask('gpu-1', 'web', csr))
  assert.equal(fake.asked.length, 0)
  given(await leaves.ask('gpu-1', 'web'))
  assert.equal(fake.asked.length, 1)
})

test('an issuer is asked for nothing while there is no programs root yet: agents take no leaf without it', async (t) => {
  const setup = await setUpLeaves(t)
  const { plane, fake, leaves } = setup
  const programs = { ...leaves.parts.programs, roots: () => [] }
  await withOutput(setup)
  const call = { output: 'web', csr: newLeafCsr(), takesOutside: true, correlation: 'leaf' }
  const principal = await plane.principal('gpu-1')
  const early = await issueProgram(plane.core, { ...leaves.parts, programs }, principal, call)
  assert.ok(isRefusal(early) && early.code === 'UNAVAILABLE' && (early.retryAfterMs ?? 0) > 0)
  assert.deepEqual([fake.asked.length, await plane.orders()], [0, []])
  given(await leaves.ask('gpu-1', 'web', call.csr))
})

test('an output may name an issuer that is there, enabled and tested, and keeps it from retiring', async (t) => {
  const { plane, leaves } = await setUpLeaves(t)
  const refusedWith = async (...outputs: object[]): Promise<string> => {
    const done = await leaves.list(...outputs)
    return isRefusal(done) ? `${done.code} ${done.detail ?? ''}` : 'set'
  }
  assert.match(await refusedWith({ ...web, issuer: 'nobody' }), /^OUTSIDE_ISSUER_NOT_FOUND/)
  assert.match(await refusedWith({ ...web, issuer: 'No Name' }), /^PROFILE_INVALID .*issuer takes built-in/)
  assert.match(await refusedWith({ ...web, lifetimeMs: 90 * day, name: 'long' }), /^set/)
  assert.equal((await disableIssuer(plane.core, 'corp', 'maintenance', operator)).kind, 'changed')
  // What is as it was is not asked for again.
  assert.equal(await refusedWith({ ...web, lifetimeMs: 90 * day, name: 'long', keyType: 'p384' }), 'set')
  assert.match(await refusedWith(web), /^ISSUER_NOT_READY corp is disabled/)
  const parts = { secrets: { drop: async () => {} }, kinds: {} } as unknown as Parameters<typeof retireIssuer>[1]
  const kept = await retireIssuer(plane.core, parts, 'corp', operator)
  assert.deepEqual(isRefusal(kept) && [kept.code, kept.detail], [
    'ISSUER_IN_USE',
    'the outputs that name it: long of gpu-cloud',
  ])
  given(await leaves.list())
  assert.equal((await retireIssuer(plane.core, parts, 'corp', operator)).kind, 'changed')
})

test('an issuer that is away refuses with a time, binds the key to the program, and signs the same request when it is back', async (t) => {
  const setup = await setUpLeaves(t)
  await withOutput(setup)
  const { plane, fake, leaves } = setup
  const { answer } = fake
  fake.answer = async () => ({ kind: 'unsigned', why: 'not today' })
  const csr = newLeafCsr()
  const refused = await leaves.ask('gpu-1', 'web', csr)
  assert.ok(isRefusal(refused) && refused.code === 'ISSUER_UNAVAILABLE' && (refused.retryAfterMs ?? 0) > 0)
  // The key is claimed: it is nobody else's, and not another output's either.
  await plane.recoverable('gpu-2', generateKey('p256'))
  given(await leaves.list(web, { name: 'probe', issuer: 'corp' }))
  assert.equal(codeOfAnswer(await leaves.ask('gpu-2', 'probe', csr)), 'KEY_IN_USE')
  assert.equal(codeOfAnswer(await leaves.ask('gpu-1', 'probe', csr)), 'KEY_IN_USE')
  await plane.sweep()
  fake.answer = answer
  given(await leaves.ask('gpu-1', 'web', csr))
  assert.deepEqual((await plane.orders()).map(({ state }) => state.kind).toSorted(), ['issued'])
  // The issuer is named no more while an order of the key is lost: the authority of the domain signs, and the order ends.
  fake.answer = async () => ({ kind: 'unsigned', why: 'not today' })
  const other = newLeafCsr()
  assert.equal(codeOfAnswer(await leaves.ask('gpu-1', 'web', other)), 'ISSUER_UNAVAILABLE')
  given(await leaves.list({ ...web, issuer: 'built-in' }))
  given(await leaves.ask('gpu-1', 'web', other))
  assert.ok((await plane.orders()).every(({ state }) => state.kind !== 'lost'))
})

test('what was not ordered is not handed out: a violation', async (t) => {
  const setup = await setUpLeaves(t)
  await withOutput(setup)
  const { plane, fake, leaves } = setup
  fake.answer = async (attempt) => fake.sign(attempt, { order: { dnsSans: ['web.example', 'other.example'] } })
  assert.equal(codeOfAnswer(await leaves.ask('gpu-1', 'web')), 'ISSUER_UNAVAILABLE')
  fake.answer = async (attempt) => fake.sign(attempt, { order: { usage: 'client' } })
  assert.equal(codeOfAnswer(await leaves.ask('gpu-1', 'web')), 'ISSUER_UNAVAILABLE')
  const fields = (await plane.journal('issuer.violation')).map(({ body }) => body['fields'])
  assert.deepEqual(fields, [['subjectAltName'], ['extendedKeyUsage']])
  assert.deepEqual((await plane.toBeRevoked()).toSorted(), fake.signed.map(({ serial }) => serial).toSorted())
  assert.equal((await plane.rows('program')).length, 0)
})

for (const [point, signed] of [
  ['the answer', 0],
  ['the second commit', 1],
] as const)
  test(`a plane that dies before ${point} leaves a program that gets one leaf, and an orphan that is revoked`, async (t) => {
    const setup = await setUpLeaves(t)
    await withOutput(setup)
    const { plane, fake, leaves } = setup
    const { answer } = fake
    const csr = newLeafCsr()
    if (point === 'the answer') fake.answer = () => new Promise(() => {})
    else plane.crash.next = { at: ({ writes }) => writes.some(({ put }) => put === 'program'), commits: 'never' }
    leaves.ask('gpu-1', 'web', csr).catch(() => {})
    await eventually('the issuer to be asked', () => fake.asked.length > 0 && fake.signed.length === signed)
    fake.answer = answer
    const next = await setup.restart()
    const again = await openLeaves(next)
    const leaf = parsed(given(await again.ask('gpu-1', 'web', csr)).certificate_chain)
    const [order, replaced] = (await next.orders()).toSorted((one) => (one.state.kind === 'issued' ? -1 : 1))
    assert.deepEqual([order?.state.kind, replaced?.state.kind], ['issued', 'replaced'])
    assert.deepEqual(await next.toBeRevoked(), [fake.asked[0]?.serial])
    assert.notEqual(leaf.serial, fake.asked[0]?.serial)
    const programs = (await next.rows('certificate')).filter(({ subject }) => subject.kind === 'program')
    assert.deepEqual(
      programs.map(({ serial }) => serial),
      [leaf.serial],
    )
  })

test('a lost order of a program is abandoned with its node, or when it has another leaf; its key is banned only where something may be signed for it', async (t) => {
  const setup = await setUpLeaves(t)
  await withOutput(setup)
  const { plane, fake, leaves, clock } = setup
  const { answer } = fake
  fake.answer = () => Promise.reject(new Error('it has hung up'))
  const csr = newLeafCsr()
  assert.equal(codeOfAnswer(await leaves.ask('gpu-1', 'web', csr)), 'ISSUER_UNAVAILABLE')
  // A renewal of the node is no leaf of the program.
  clock.advance(60_000)
  await plane.renew('gpu-1')
  await plane.sweep()
  const [lost] = await plane.orders()
  assert.equal(lost?.state.kind, 'lost')
  await plane.act('gpu-1', 'revoke')
  await plane.sweep()
  const [over] = await plane.orders()
  assert.deepEqual(over?.state.kind === 'abandoned' && over.state.why, 'its node was revoked')
  assert.ok((await plane.rows('key-ban')).some(({ spki }) => spki === lost?.spki))
  fake.answer = answer
})

/** As another replica has them: it hears of what is committed here, but of no order. */
const rootsElsewhere = async ({ core, store, known, book }: OutsidePlane) => {
  const feed = openFeed()
  core.feed.subscribe('metrics', (committed) =>
    feed.publish({ ...committed, writes: committed.writes.filter(({ put }) => put !== 'order') }),
  )
  return openOutsideProgramRoots({ store, feed }, { known, book })
}

test('a root of an issuer is given to verifiers while an output names it or a leaf of it is on record, and no plane is verified with it', async (t) => {
  const setup = await setUpLeaves(t)
  const { plane, fake, leaves } = setup
  const { programRoots, issuer } = plane.issuance
  const root = toPem('CERTIFICATE', fake.root.certificate.der)
  assert.deepEqual(programRoots.current(), [])
  await withOutput(setup)
  assert.deepEqual(programRoots.current(), [root])
  assert.ok(!issuer.roots().includes(root))
  given(await leaves.list({ ...web, issuer: 'built-in' }))
  await programRoots.upkeep.run(plane.store)
  assert.deepEqual(programRoots.current(), [])
  given(await leaves.list(web))
  const elsewhere = await rootsElsewhere(plane)
  given(await leaves.ask('gpu-1', 'web'))
  given(await leaves.list())
  assert.deepEqual(programRoots.current(), [root], 'a leaf below it may be valid')
  assert.deepEqual(elsewhere.current(), [root], 'also for those who ask a replica that has placed no order')
  await programRoots.upkeep.run(plane.store)
  assert.deepEqual(programRoots.current(), [root])
  assert.deepEqual((await openLeaves(await setup.restart())).parts.outsideRoots(), [root])
  assert.notEqual(rootsHash([root]), rootsHash([]))
})

test('a worker gets its certificates from the issuer that its worker issuer names, and is known by its row', async (t) => {
  const { plane, fake, leaves, clock } = await setUpLeaves(t)
  given(await leaves.addWorkers('corp'))
  const pod = '5f0c5d9e-9d3a-4c64-8f1b-0a4d8f6c7b21'
  const token = () => east.token({ pod, nowMs: clock.nowMs() })
  const first = given(await leaves.enrollWorker(token(), makeCsr(generateKey('ed25519'), 'worker')))
  const leaf = parsed(first.certificate_chain)
  assert.match(leaf.subject, /OU=workers/)
  assert.deepEqual([leaf.extendedKeyUsage, leaf.uris, leaf.dnsNames], [['clientAuth'], [], []])
  const [worker] = await plane.rows('worker')
  assert.equal(worker?.current.issuer, keyId(fake.issuing.key.spki))
  // A plane is verified with the roots of the domain alone.
  assert.deepEqual(first.roots, plane.issuance.issuer.roots())
  assert.deepEqual(
    fake.asked.map(({ kind, purpose }) => [kind, purpose]),
    [['worker:east', 'enrollment']],
  )
  const slot = worker?.current ?? assert.fail()
  const credential = { by: 'certificate', issuer: slot.issuer, serial: slot.serial, spki: slot.spki } as const
  const principal = { kind: 'worker', id: first.worker_id, issuer: 'east', credential, source: 'x' } as const
  given(
    await leaves.renewWorker(
      { ...principal, notAfterMs: slot.notAfterMs },
      token(),
      makeCsr(generateKey('ed25519'), 'worker'),
    ),
  )
  assert.equal(fake.asked.at(-1)?.purpose, 'renewal')

  const receipts = { collect: async <T>(receipt: T) => receipt }
  given(await revokeWorker(plane.core, { receipts }, first.worker_id, { reason: 'leaked', by: operator }))
  const denials = await plane.rows('denial')
  for (const { serial } of fake.signed)
    assert.ok(denials.some((denial) => denial.kind === 'certificate' && denial.serial === serial))
  assert.equal(codeOfAnswer(await leaves.enrollWorker(token(), makeCsr(generateKey('ed25519'), 'w'))), 'WORKER_REVOKED')
})

test('a token of a worker is bound to its key by the order, and an issuer that is away costs it nothing', async (t) => {
  const { plane, fake, leaves, clock } = await setUpLeaves(t)
  given(await leaves.addWorkers('corp'))
  const { answer } = fake
  fake.answer = async () => ({ kind: 'unsigned', why: 'not today' })
  const token = east.token({ pod: '5f0c5d9e-9d3a-4c64-8f1b-0a4d8f6c7b21', nowMs: clock.nowMs() })
  const csr = makeCsr(generateKey('ed25519'), 'worker')
  assert.equal(codeOfAnswer(await leaves.enrollWorker(token, csr)), 'ISSUER_UNAVAILABLE')
  fake.answer = answer
  const thief = makeCsr(generateKey('ed25519'), 'worker')
  assert.equal(codeOfAnswer(await leaves.enrollWorker(token, thief)), 'WORKER_TOKEN_USED')
  given(await leaves.enrollWorker(token, csr))
  assert.deepEqual((await plane.orders()).map(({ state }) => state.kind).toSorted(), ['issued'])
})

test('a worker issuer names an issuer that is there, and keeps it from retiring', async (t) => {
  const { plane, leaves } = await setUpLeaves(t)
  const unknown = await leaves.addWorkers('nobody')
  assert.equal(isRefusal(unknown) && unknown.code, 'OUTSIDE_ISSUER_NOT_FOUND')
  given(await leaves.addWorkers('corp'))
  const parts = { secrets: { drop: async () => {} }, kinds: {} } as unknown as Parameters<typeof retireIssuer>[1]
  const kept = await retireIssuer(plane.core, parts, 'corp', operator)
  assert.deepEqual(isRefusal(kept) && [kept.code, kept.detail], [
    'ISSUER_IN_USE',
    'the worker issuers that name it: east',
  ])
})
