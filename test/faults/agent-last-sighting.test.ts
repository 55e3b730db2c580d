// What an agent has seen of the journal, on a disk that is full, read-only or damaged: it is kept where it can be, and costs
// the credentials nothing.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { openSightingKeeper } from '#agent/continuity/last-sighting.ts'
import { openStorage, reserveBytes } from '#agent/state/storage.ts'
import { generateKey, type PrivateKey } from '#pki/keys.ts'
import { allocatedBytes } from '#platform/disk-space.ts'
import { formatStatement } from '#wire/core/statement.ts'
import { manualClock } from '../fakes/manual-clock.ts'
import { withPeer } from '../peers/peer.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { mountTmpfs } from '../process/tmpfs.ts'

const domain = 'lab.example'

const seen = (sequence: number, lineage = 0, of = domain): string => {
  const heads = [{ chain: 'c1', sequence, hash: 'ab'.repeat(32) }]
  return formatStatement('sighting', { domain: of, lineage, heads }, () => Buffer.alloc(64))
}

const storageOn = (folder: string) => {
  return openStorage(manualClock(0), folder, true, () => {})
}

const anyDisk = { pressure: () => false, diagnosticWrite: () => {} }

test('the newest is kept across processes, an older or a foreign one is not, and a later lineage beats a longer journal', (t) => {
  const folder = tempFolder(t)
  const keeper = openSightingKeeper(folder, anyDisk)
  assert.equal(keeper.newest(domain), null)
  for (const sequence of [5, 9, 7]) assert.equal(keeper.saw(seen(sequence), domain), true)
  assert.equal(keeper.newest(domain), seen(9))
  assert.equal(keeper.saw(seen(100, 0, 'other.example'), domain), false)
  assert.equal(keeper.saw('sighting1.e30.AA', domain), false)
  const next = openSightingKeeper(folder, anyDisk)
  assert.equal(next.newest(domain), seen(9))
  assert.equal(next.newest('other.example'), null)
  next.saw(seen(2, 1), domain)
  next.saw(seen(50), domain)
  assert.equal(openSightingKeeper(folder, anyDisk).newest(domain), seen(2, 1))
  // Of another domain now: what was seen of the one before means nothing there.
  next.saw(seen(1, 0, 'other.example'), 'other.example')
  assert.deepEqual([next.newest(domain), next.newest('other.example')], [null, seen(1, 0, 'other.example')])
})

test('R1c: a sighting that is shorter in one chain, or has another entry in one place, replaces nothing', (t) => {
  const keeper = openSightingKeeper(tempFolder(t), anyDisk)
  const of = (one: number, other: number, hash = 'ab') =>
    formatStatement(
      'sighting',
      {
        domain,
        lineage: 0,
        heads: [
          { chain: 'c1', sequence: one, hash: hash.repeat(32) },
          { chain: 'c2', sequence: other, hash: 'ab'.repeat(32) },
        ],
      },
      () => Buffer.alloc(64),
    )
  keeper.saw(of(10, 10), domain)
  keeper.saw(of(9, 100), domain)
  keeper.saw(of(10, 100, 'cd'), domain)
  assert.equal(keeper.newest(domain), of(10, 10))
  keeper.saw(of(10, 11), domain)
  assert.equal(keeper.newest(domain), of(10, 11))
})

test('R1c: earlier sightings are kept at growing distances, across processes, and only of this lineage', (t) => {
  const folder = tempFolder(t)
  for (let sequence = 1; sequence <= 100; sequence++) openSightingKeeper(folder, anyDisk).saw(seen(sequence), domain)
  const keeper = openSightingKeeper(folder, anyDisk)
  assert.deepEqual(
    keeper.earlier(domain),
    [99, 97, 93, 89, 81, 65, 1].map((sequence) => seen(sequence)),
  )
  assert.deepEqual(keeper.earlier('other.example'), [])
  keeper.saw(seen(3, 1), domain)
  assert.deepEqual(openSightingKeeper(folder, anyDisk).earlier(domain), [])
})

test('R1: sightings of a domain that was made anew under its name are dropped by the enrollment, those of the same are not', (t) => {
  const folder = tempFolder(t)
  const [before, anew] = [generateKey('p256'), generateKey('p256')]
  const signed = (sequence: number, key: PrivateKey): string => {
    const heads = [{ chain: 'c1', sequence, hash: 'ab'.repeat(32) }]
    return formatStatement('sighting', { domain, lineage: 0, heads }, (bytes) => key.sign(bytes))
  }
  const spkiOf = (key: PrivateKey): string => Buffer.from(key.spki).toString('base64')
  const keeper = openSightingKeeper(folder, anyDisk)
  for (const sequence of [50, 60, 70]) keeper.saw(signed(sequence, before), domain)
  const kept = keeper.newest(domain)
  for (const keys of [[], [spkiOf(anew), spkiOf(before)]]) {
    keeper.enrolledUnder(keys)
    assert.equal(openSightingKeeper(folder, anyDisk).newest(domain), kept)
  }
  keeper.enrolledUnder([spkiOf(anew)])
  for (const one of [keeper, openSightingKeeper(folder, anyDisk)]) {
    assert.deepEqual([one.newest(domain), one.earlier(domain)], [null, []])
  }
  const next = signed(3, anew)
  keeper.saw(next, domain)
  const again = openSightingKeeper(folder, anyDisk)
  assert.deepEqual([again.newest(domain), again.earlier(domain)], [next, []])
})

test('a file that is damaged counts as none', (t) => {
  const folder = tempFolder(t)
  openSightingKeeper(folder, anyDisk).saw(seen(5), domain)
  fs.writeFileSync(path.join(folder, 'sighting'), 'x'.repeat(1000))
  const keeper = openSightingKeeper(folder, anyDisk)
  assert.equal(keeper.newest(domain), null)
  keeper.saw(seen(6), domain)
  assert.equal(openSightingKeeper(folder, anyDisk).newest(domain), seen(6))
})

test('on a full disk what was kept before is still replaced; what was not takes no room, and the reserve is whole', (t) => {
  if (withPeer(t, 'tmpfs') === null) return
  const disk = mountTmpfs(t, tempFolder(t), 4 * 1024 * 1024)
  const [before, never] = [path.join(disk.folder, 'before'), path.join(disk.folder, 'never')]
  const storage = { before: storageOn(before), never: storageOn(never) }
  const reserves = (): number[] => [before, never].map((folder) => allocatedBytes(path.join(folder, 'reserve')))
  openSightingKeeper(before, storage.before).saw(seen(5), domain)
  disk.fill(0)
  const keeper = openSightingKeeper(before, storageOn(before))
  keeper.saw(seen(6), domain)
  assert.equal(openSightingKeeper(before, anyDisk).newest(domain), seen(6))

  const late = storageOn(never)
  const other = openSightingKeeper(never, late)
  other.saw(seen(6), domain)
  other.saw(seen(7), domain)
  assert.equal(other.newest(domain), seen(7), 'in memory it goes on')
  assert.equal(openSightingKeeper(never, anyDisk).newest(domain), null)
  assert.ok(reserves().every((bytes) => bytes >= reserveBytes))
  assert.ok(late.identityWritable())

  disk.free()
  const again = openSightingKeeper(never, storageOn(never))
  again.saw(seen(8), domain)
  assert.equal(openSightingKeeper(never, anyDisk).newest(domain), seen(8))
})
