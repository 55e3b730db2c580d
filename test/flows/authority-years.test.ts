// The authority over years, three days at a time.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseCertificate } from '#pki/parse-certificate.ts'
import type { Authority } from '#plane/authority/authority.ts'
import { dropEndedListKeys } from '#plane/authority/list-signer.ts'
import { withPeer } from '../peers/peer.ts'
import {
  day,
  leafOrder,
  longestProfileMs,
  opensslVerify,
  setUpWithFiles,
  startMs,
  type Setup,
} from './authority-setup.ts'

const year = 365 * day
const step = 3

const endOf = (der: Uint8Array): number => {
  const parsed = parseCertificate(der)
  return parsed.kind === 'certificate' ? parsed.notAfterMs : 0
}

/** Maintains, then signs, every few days; returns the serials of the server certificates and the issuers of the leaves. */
const liveThrough = async (setup: Setup, authority: Authority, days: number) => {
  const servers = new Set<string>()
  const issuers = new Set<string>()
  const wrong: string[] = []
  for (let passed = 0; passed < days; passed += step) {
    await authority.maintain(longestProfileMs)
    const nowMs = setup.clock.nowMs()
    const { authorities, server_certificate: server } = authority.view()
    const signing = authorities.find((one) => one.role === 'issuing' && one.signing)
    const leaf = await authority.sign(leafOrder(nowMs))
    const ends = authority.chainOf(leaf.issuer).map(endOf)
    if (leaf.issuer !== signing?.id) wrong.push(`day ${passed}: signing had to make an issuer first`)
    if (leaf.notAfterMs !== nowMs + longestProfileMs) wrong.push(`day ${passed}: a leaf was cut short`)
    if (ends.some((end) => end < leaf.notAfterMs)) wrong.push(`day ${passed}: a leaf outlives its chain`)
    if (authority.serverIdentity().notAfterMs - nowMs < 44 * day)
      wrong.push(`day ${passed}: the server's is past half life`)
    issuers.add(leaf.issuer)
    servers.add(server.serial)
    setup.clock.advance(step * day)
  }
  assert.deepEqual(wrong, [])
  return { servers: servers.size, issuers: issuers.size }
}

test('over six years every leaf has its full life within its chain, and nothing of the plane gets old', async (t) => {
  const openssl = withPeer(t, 'openssl')
  if (openssl === null) return
  const setup = await setUpWithFiles(t)
  const authority = await setup.open()
  let told = 0
  authority.onServerIdentity(() => told++)
  const days = 6 * 365
  const early = await authority.sign(leafOrder(startMs))
  const { servers, issuers } = await liveThrough(setup, authority, days)
  assert.equal(issuers, 3)
  assert.ok(servers >= days / 45 && servers <= days / 45 + 3, `${servers} server certificates`)
  assert.equal(told, servers - 1)
  assert.equal((await setup.journal('server_certificate.issued')).length, servers)
  assert.equal((await setup.journal('ca.rotated')).length, 2)
  await dropEndedListKeys({ custody: await setup.custody(), store: setup.store, nowMs: setup.clock.nowMs() })
  assert.deepEqual(setup.keyFiles(), ['issuing', 'root', 'server'])

  const late = await authority.sign(leafOrder(setup.clock.nowMs()))
  assert.match(opensslVerify(t, openssl, authority, late, setup.clock.nowMs()), /: OK$/)
  assert.match(opensslVerify(t, openssl, authority, early, startMs), /: OK$/)
  assert.equal((await setup.open()).serverIdentity().chainPem, authority.serverIdentity().chainPem)
})

test('over three years with keys in memory and no restart the same holds', async (t) => {
  const setup = await setUpWithFiles(t, { issuerKey: 'memory' })
  const authority = await setup.open()
  const days = 3 * 365
  const { servers, issuers } = await liveThrough(setup, authority, days)
  assert.ok(servers <= days / 45 + 3, `${servers} server certificates`)
  assert.ok(issuers >= days / 7 && issuers <= days / 5, `${issuers} issuers`)
  assert.deepEqual(setup.keyFiles(), ['domain-ca', 'root', 'server'])
})

test('changed names of the server are certified at the next start', async (t) => {
  const setup = await setUpWithFiles(t)
  await setup.open()
  const names = { dns: ['Plane.Example'], ip: ['2001:DB8:0:0:0:0:0:1'] }
  const authority = await setup.open({ serverNames: names })
  assert.deepEqual(authority.view().server_certificate.names, [
    'plane.example',
    'localhost',
    '2001:db8::1',
    '127.0.0.1',
    '::1',
  ])
  await setup.open({ serverNames: names })
  const whys = (await setup.journal('server_certificate.issued')).map(({ body }) => body['why'])
  assert.deepEqual(whys, ['first one', 'names changed'])
})

test('a clock that was ahead by years and is set back costs new certificates, and nothing is stuck', async (t) => {
  const setup = await setUpWithFiles(t)
  const authority = await setup.open()
  setup.clock.set(startMs + 4 * year)
  await authority.maintain(longestProfileMs)
  setup.clock.set(startMs + day)
  await authority.maintain(longestProfileMs)
  const leaf = await authority.sign(leafOrder(setup.clock.nowMs()))
  assert.equal(leaf.notAfterMs, startMs + day + longestProfileMs)
  assert.ok(authority.chainOf(leaf.issuer).every((der) => endOf(der) > leaf.notAfterMs))
  assert.ok(authority.serverIdentity().notAfterMs < startMs + 92 * day)
})
