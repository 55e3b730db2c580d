// OCSP answers by a responder whose key is in a token that takes 50 ms a signature: OpenSSL takes them, and anonymous questions cost few signatures.

import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { hash } from 'node:crypto'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { certificateKey, slotOf, type IssuedCertificate } from '#domain/core/certificate.ts'
import { entry } from '#domain/core/change.ts'
import { noHardware } from '#domain/core/node.ts'
import { encode, octets, oid, sequence, unsigned } from '#pki/der-writer.ts'
import { keyHash } from '#pki/keys.ts'
import { oids } from '#pki/oids.ts'
import { toPem } from '#pki/pem.ts'
import { systemTimers } from '#platform/timers.ts'
import { certificateOf } from '#plane/authority/ca-signer.ts'
import { openOcsp, type OcspReply } from '#plane/ca/answer-ocsp.ts'
import { openResponders } from '#plane/ca/responders.ts'
import { openFeed } from '#plane/core/feed.ts'
import { openKeysElsewhere } from '#plane/keys/keys-elsewhere.ts'
import { day, leafOrder, operator, setUpWithFiles } from '../flows/authority-setup.ts'
import { manualClock } from '../fakes/manual-clock.ts'
import { memberships, nodeRow, slots } from '../fakes/sample-rows.ts'
import { cleanup } from '../process/cleanup.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { withPeer } from './peer.ts'
import { softTokens } from './soft-token.ts'

const delayMs = 50

/** Null after the test has been skipped. */
const inToken = async (t: TestContext) => {
  const tokens = softTokens(t, 'status')
  const openssl = withPeer(t, 'openssl')
  if (tokens === null || openssl === null) return null
  const pace = manualClock(0)
  const elsewhere = openKeysElsewhere(
    { module: tokens.module, vault: null, pin: tokens.pinFile, credentialsFolder: null },
    { clock: pace, timers: systemTimers, limits: { delayMs } },
  )
  cleanup(t, () => elsewhere.close())
  const setup = await setUpWithFiles(t, {}, elsewhere)
  const authority = await setup.open({ responderKeyPlace: { token: 'status', serial: null } })
  const feed = openFeed()
  const { store, clock } = setup
  const answer = openOcsp({ store, feed, clock }, openResponders({ store, feed, clock }, await setup.custody()))
  const issue = async (): Promise<IssuedCertificate> => {
    const issued = await authority.sign(leafOrder(clock.nowMs(), 30 * day))
    const node = `gpu-${issued.serial}`
    const value = { ...issued, subject: { kind: 'node', node, epoch: 1 }, renews: null } as const
    const row = nodeRow('active', { id: node, epoch: 1, hardware: noHardware }).value
    const membership = { ...memberships.active, slots: slots({ current: slotOf(value) }) }
    await store.commit({
      reads: [
        { row: 'certificate', key: certificateKey(issued.issuer, issued.serial), version: 0 },
        { row: 'node', key: node, version: 0 },
      ],
      writes: [
        { put: 'certificate', value },
        { put: 'node', value: { ...row, membership } },
      ],
      entries: [entry(operator, clock.nowMs(), 'ca.requested', {}, {})],
    })
    return issued
  }
  const idOf = async (issuer: string, serial: string) => {
    const { subjectName, spki } = certificateOf((await store.get('issuer', issuer))?.value ?? assert.fail())
    return sequence(
      sequence(oid(oids.sha1)),
      octets(Buffer.from(hash('sha1', subjectName, 'hex'), 'hex')),
      octets(Buffer.from(keyHash(spki, 'sha1'), 'hex')),
      unsigned(Buffer.from(serial.padStart(40, '0'), 'hex')),
    )
  }
  const ask = async (issuer: string, ...serials: string[]): Promise<OcspReply> => {
    const ids = await Promise.all(serials.map((serial) => idOf(issuer, serial)))
    return answer(encode(sequence(sequence(sequence(...ids.map((id) => sequence(id)))))))
  }
  const deny = async ({ issuer, serial }: IssuedCertificate): Promise<void> => {
    const times = { atMs: clock.nowMs(), untilMs: clock.nowMs() + day, why: 'stolen' }
    const value = { kind: 'certificate', issuer, serial, ...times, reason: 'key-compromise' } as const
    const noted = entry(operator, clock.nowMs(), 'ca.requested', {}, {})
    const outcome = await store.commit({ reads: [], writes: [{ put: 'denial', value }], entries: [noted] })
    assert.ok(outcome !== 'lost-race')
    feed.publish(outcome)
  }
  return { tokens, openssl, pace, setup, authority, answer, issue, ask, deny }
}

test('OpenSSL asks about a certificate with a nonce, and takes the answer that a token has signed', async (t) => {
  const made = await inToken(t)
  if (made === null) return
  const { openssl, authority, answer, issue, deny } = made
  const leaf = await issue()
  const folder = tempFolder(t)
  const file = (name: string, content: string | Uint8Array = ''): string => {
    if (content.length > 0) fs.writeFileSync(path.join(folder, name), content)
    return path.join(folder, name)
  }
  const issuer = file('issuer.pem', toPem('CERTIFICATE', authority.chainOf(leaf.issuer)[0] ?? assert.fail()))
  const cert = file('leaf.pem', toPem('CERTIFICATE', Buffer.from(leaf.der, 'base64')))
  const roots = file('roots.pem', authority.roots().join(''))
  const asked = ['ocsp', '-issuer', issuer, '-cert', cert]
  execFileSync(openssl, [...asked, '-reqout', file('question')], { stdio: 'pipe' })
  const said = async (): Promise<string> => {
    const { der } = await answer(fs.readFileSync(file('question')))
    const at = String(Math.floor(made.setup.clock.nowMs() / 1000))
    const trust = ['-CAfile', roots, '-verify_other', issuer, '-no-CApath', '-no-CAstore', '-attime', at]
    // The clock of the test is not that of OpenSSL.
    const args = [...asked, '-respin', file('answer', der), ...trust, '-validity_period', '2000000000']
    const { stdout, stderr } = spawnSync(openssl, args, { encoding: 'utf8' })
    return stdout + stderr
  }
  assert.match(await said(), /leaf\.pem: good[^]*Response verify OK/)
  await deny(leaf)
  assert.match(await said(), /leaf\.pem: revoked[^]*keyCompromise[^]*Response verify OK/)
})

test('a storm of anonymous questions costs few signatures, holds up no other, and is told to come later', async (t) => {
  const made = await inToken(t)
  if (made === null) return
  const { ask, issue, authority, setup } = made
  const leaves = await Promise.all(Array.from({ length: 100 }, issue))
  const { issuer } = leaves[0] ?? assert.fail()
  const serials = leaves.map(({ serial }) => serial)
  let ticks = 0
  const timer = setInterval(() => ticks++, 1)
  const startedMs = performance.now()
  // Each is asked about 20 times.
  const replies = Promise.all(Array.from({ length: 2000 }, (_, index) => ask(issuer, serials[index % 100] ?? '')))
  const other = await authority.sign(leafOrder(setup.clock.nowMs()))
  const otherMs = performance.now() - startedMs
  assert.ok(other.serial)
  const outcomes = Map.groupBy(await replies, ({ outcomes: [outcome] }) => outcome)
  clearInterval(timer)
  // 4 are signed at once and 60 wait.
  assert.deepEqual([...outcomes.keys()].sort(), ['good', 'tryLater'])
  assert.equal(new Set(outcomes.get('good')?.map(({ der }) => Buffer.from(der).toString('hex'))).size, 64)
  assert.ok(ticks > 64 * (delayMs / 10), `${ticks} ticks`)
  assert.ok(otherMs < 64 * delayMs, `a certificate of the authority, whose key is here, took ${otherMs.toFixed(0)} ms`)
  // Those that were signed are repeated, whatever the question: the token is asked no more.
  made.tokens.pull()
  const [, ...repeated] = await Promise.all([0, 1].map(() => ask(issuer, serials[0] ?? '')))
  assert.deepEqual(repeated[0]?.outcomes, ['good'])
})

test('nothing is signed about what is not on record, nor about several at once', async (t) => {
  const made = await inToken(t)
  if (made === null) return
  const { ask, issue, tokens } = made
  const [one, other] = [await issue(), await issue()]
  tokens.pull()
  assert.deepEqual((await ask(one.issuer, '1234567890')).outcomes, ['unauthorized'])
  assert.deepEqual((await ask(one.issuer, one.serial, other.serial)).outcomes, ['unauthorized'])
  assert.deepEqual((await ask(one.issuer, one.serial)).outcomes, ['tryLater'])
})

test('an answer is made anew after two minutes, and repeated while the token is away as long as it is good', async (t) => {
  const made = await inToken(t)
  if (made === null) return
  const { ask, issue, deny, setup, tokens, pace } = made
  const leaf = await issue()
  const minute = 60_000
  const asked = async () => ask(leaf.issuer, leaf.serial)
  const first = await asked()
  setup.clock.advance(minute)
  assert.equal((await asked()).goodFrom?.thisUpdateMs, first.goodFrom?.thisUpdateMs)
  setup.clock.advance(2 * minute)
  const second = await asked()
  assert.notEqual(second.goodFrom?.thisUpdateMs, first.goodFrom?.thisUpdateMs)
  tokens.pull()
  setup.clock.advance(3 * minute)
  assert.equal((await asked()).goodFrom?.thisUpdateMs, second.goodFrom?.thisUpdateMs)
  // What was said before a revocation is not said after it.
  await deny(leaf)
  assert.deepEqual((await asked()).outcomes, ['tryLater'])
  tokens.putBack()
  pace.advance(30_000)
  assert.deepEqual((await asked()).outcomes, ['revoked'])
})
