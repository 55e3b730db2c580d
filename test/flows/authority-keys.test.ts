// Key files between starts and crashes: what is sealed wrongly is refused, what nothing names is set aside.

import { noPrograms, noWorkers } from '../fakes/no-programs.ts'
import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { openFeed } from '#plane/core/feed.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { openAuthority } from '#plane/authority/built-in-authority.ts'
import { openServedNames } from '#plane/authority/served-names.ts'
import { openKeyCustody } from '#plane/keys/key-custody.ts'
import { SealRefused } from '#plane/keys/seal.ts'
import { findSealingKey } from '#plane/keys/sealing-key.ts'
import { silentLog } from '#platform/log.ts'
import { systemTimers } from '#platform/timers.ts'
import { systemRandom } from '#platform/random.ts'
import { day, leafOrder, longestProfileMs, operator, setUpWithFiles, startMs, type Setup } from './authority-setup.ts'

const keyFile = (setup: Setup, role: string): string => {
  const folder = path.join(setup.folder, 'keys')
  return path.join(
    folder,
    fs.readdirSync(folder).find((name) => name.startsWith(`${role}.`))!,
  )
}

/** The authority on a store whose commits the test can make fail. */
const openOn = async (setup: Setup, commit: Store['commit']) => {
  const store = { ...setup.store, commit }
  const core = { store, feed: openFeed(), clock: setup.clock, random: systemRandom, log: silentLog }
  return openAuthority(
    { ...core, timers: systemTimers },
    {
      custody: openKeyCustody(
        path.join(setup.folder, 'keys'),
        findSealingKey({ dataFolder: setup.folder, keyFile: null, credentialsFolder: null }, systemRandom),
      ),
      recovery: { storedRoots: () => [], warnings: () => [] },
      programs: noPrograms,
      workers: noWorkers,
      names: await openServedNames(core, { names: { dns: ['localhost'], ip: [] }, host: 'localhost', addresses: [] }),
      options: {
        domain: 'test.example',
        issuerKey: 'file',
        intermediateLifetimeMs: 5 * 365 * day,
        serverLifetimeMs: 90 * day,
      },
    },
  )
}

test('with another sealing key the plane does not start, and says why', async (t) => {
  const setup = await setUpWithFiles(t)
  const other = path.join(setup.folder, 'other.key')
  fs.writeFileSync(other, 'ab'.repeat(32))
  await assert.rejects(setup.open({}, other), (error: unknown) => {
    assert.ok(error instanceof SealRefused)
    assert.match(error.message, /was sealed with another key/)
    assert.match(error.next, /--seal-key/)
    return true
  })
})

test('an altered key file is refused, whichever it is', async (t) => {
  for (const role of ['root', 'issuing', 'server']) {
    const setup = await setUpWithFiles(t)
    await setup.open()
    const file = keyFile(setup, role)
    const text = fs.readFileSync(file, 'utf8')
    const middle = text.length - 100
    fs.writeFileSync(file, text.slice(0, middle) + (text[middle] === 'A' ? 'B' : 'A') + text.slice(middle + 1))
    await assert.rejects(setup.open(), /has been altered, or is another file put in its place/)
  }
})

test("the root's key in the place of the issuing one is refused", async (t) => {
  const setup = await setUpWithFiles(t)
  fs.copyFileSync(keyFile(setup, 'root'), keyFile(setup, 'issuing'))
  await assert.rejects(setup.open(), /has been altered, or is another file put in its place/)
})

test('no key file holds a private key in the clear', async (t) => {
  const setup = await setUpWithFiles(t)
  const authority = await setup.open()
  await authority.request(operator)
  for (const role of ['root', 'issuing', 'server', 'request']) {
    assert.match(fs.readFileSync(keyFile(setup, role), 'utf8'), /^muster-sealed-1:[0-9a-f]{16}:[\w:-]+\n$/)
    assert.equal(fs.statSync(keyFile(setup, role)).mode & 0o777, 0o600)
  }
})

test('the generated sealing key is reported as unprotected, one kept elsewhere is not', async (t) => {
  const setup = await setUpWithFiles(t)
  const view = (await setup.open()).view()
  assert.equal(view.sealing_protected, false)
  assert.match(view.warnings.join('\n'), /next to the keys it seals: those keys are effectively unencrypted/)

  const elsewhere = path.join(path.dirname(setup.folder), `${path.basename(setup.folder)}.seal`)
  t.after(() => fs.rmSync(elsewhere))
  fs.renameSync(path.join(setup.folder, 'seal.key'), elsewhere)
  const moved = (await setup.open({}, elsewhere)).view()
  assert.equal(moved.sealing_protected, true)
  assert.deepEqual(moved.warnings, [])
  fs.chmodSync(elsewhere, 0o640)
  const [warning = '', ...more] = (await setup.open({}, elsewhere)).view().warnings
  assert.match(warning, /read by its group/)
  assert.doesNotMatch(warning, /effectively unencrypted/)
  assert.deepEqual(more, [])
})

test('a lost key of an intermediate means a new intermediate at the next start, where the root is there', async (t) => {
  for (const [issuerKey, role] of [
    ['file', 'issuing'],
    ['memory', 'domain-ca'],
  ] as const) {
    const setup = await setUpWithFiles(t, { issuerKey })
    const before = await (await setup.open()).sign(leafOrder(startMs))
    fs.rmSync(keyFile(setup, role))
    const after = await (await setup.open()).sign(leafOrder(startMs))
    assert.notEqual(after.issuer, before.issuer)
  }
})

test('L1: key files that no commit names are set aside at the next start, byte for byte', async (t) => {
  const setup = await setUpWithFiles(t)
  const authority = await setup.open()
  const kept = setup.keyFiles()
  const strangers = ['domain-ca.00bb.key', 'issuing.00aa.key']
  for (const name of strangers) {
    fs.copyFileSync(keyFile(setup, 'issuing'), path.join(setup.folder, 'keys', name))
  }
  assert.notDeepEqual(setup.keyFiles(), kept)
  const again = await setup.open()
  assert.deepEqual(setup.keyFiles(), [...kept, 'set-aside'])
  const aside = path.join(setup.folder, 'keys', 'set-aside')
  assert.deepEqual(fs.readdirSync(aside).sort(), strangers)
  for (const name of strangers) {
    assert.deepEqual(fs.readFileSync(path.join(aside, name)), fs.readFileSync(keyFile(setup, 'issuing')))
  }
  assert.equal(again.serverIdentity().chainPem, authority.serverIdentity().chainPem)
})

test('the keys of a commit that failed do not pile up, and the next attempt succeeds', async (t) => {
  const setup = await setUpWithFiles(t)
  let broken = false
  const authority = await openOn(setup, (change) =>
    broken ? Promise.reject(new Error('disk full')) : setup.store.commit(change),
  )
  broken = true
  for (let attempt = 0; attempt < 5; attempt++) await assert.rejects(authority.rotate(operator), /disk full/)
  setup.clock.advance(46 * day)
  for (let attempt = 0; attempt < 5; attempt++) await assert.rejects(authority.maintain(longestProfileMs), /disk full/)
  assert.ok(setup.keyFiles().length <= 5, setup.keyFiles().join())
  assert.ok(await authority.sign(leafOrder(setup.clock.nowMs())))

  broken = false
  assert.equal(await authority.rotate(operator), undefined)
  assert.deepEqual(setup.keyFiles(), ['issuing', 'retired', 'root', 'server'])
})

test('a commit that was durable though it failed costs nothing', async (t) => {
  const setup = await setUpWithFiles(t)
  let broken = false
  const authority = await openOn(setup, async (change) => {
    const outcome = await setup.store.commit(change)
    if (broken) throw new Error('no answer')
    return outcome
  })
  broken = true
  await assert.rejects(authority.rotate(operator), /no answer/)
  const restarted = await setup.open({ serverNames: { dns: ['localhost'], ip: [] } })
  const leaf = await restarted.sign(leafOrder(startMs))
  assert.equal(leaf.issuer, restarted.view().authorities.find(({ role, signing }) => role === 'issuing' && signing)?.id)
})

test('a lost race is tried again with what is in the store then, and not for ever', async (t) => {
  const setup = await setUpWithFiles(t)
  let losses = 0
  const authority = await openOn(setup, (change) =>
    losses-- > 0 ? Promise.resolve('lost-race') : setup.store.commit(change),
  )
  losses = 3
  assert.equal(await authority.rotate(operator), undefined)
  assert.equal((await setup.journal('ca.rotated')).length, 1)
  losses = 100
  await assert.rejects(authority.rotate(operator), /kept changing/)
  losses = 0
  await authority.maintain(longestProfileMs)
  assert.deepEqual(
    setup.keyFiles().filter((role) => role === 'root'),
    ['root'],
  )
})

test('a domain changes from file keys to memory keys and back at a start', async (t) => {
  const setup = await setUpWithFiles(t)
  const leaves = []
  for (const issuerKey of ['file', 'memory', 'file'] as const) {
    const authority = await setup.open({ issuerKey })
    leaves.push(await authority.sign(leafOrder(startMs)))
    assert.equal(authority.chainOf(leaves.at(-1)!.issuer).length, issuerKey === 'memory' ? 2 : 1)
    for (const leaf of leaves) assert.ok(authority.chainOf(leaf.issuer).length > 0)
  }
  assert.deepEqual(setup.keyFiles(), ['issuing', 'retired', 'root', 'server'])
})

test('a root of path length 1 has no memory issuers', async (t) => {
  await assert.rejects(
    setUpWithFiles(t, { issuerKey: 'memory', rootPathLen: 1 }),
    /no room for issuers with keys in memory/,
  )
  const setup = await setUpWithFiles(t, { rootPathLen: 1 })
  await assert.rejects(setup.open({ issuerKey: 'memory' }), /path length 1/)
})
