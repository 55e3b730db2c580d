// The files of an overlay: the old set or the new one, whole, whatever happens while they are replaced.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { openOverlayFiles, overlaySteps } from '#agent/fleet/apply-files.ts'
import { plainDigest } from '#agent/fleet/secret-digest.ts'
import { driftOfFiles } from '#agent/fleet/drift.ts'
import type { OverlayFile } from '#domain/fleet/overlay.ts'
import { withPeer } from '../peers/peer.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { mountTmpfs } from '../process/tmpfs.ts'

const before: readonly OverlayFile[] = [
  { path: 'etc/app.conf', mode: 0o640, content: 'colour = blue\n' },
  { path: 'bin/app', mode: 0o755, content: '#!/bin/sh\nexec true\n' },
]
const after: readonly OverlayFile[] = [
  { path: 'etc/app.conf', mode: 0o600, content: 'colour = green\n' },
  { path: 'etc/more/extra.conf', mode: 0o644, content: '' },
]

/** What a service finds: path, permissions and content, sorted. */
const found = (current: string): readonly OverlayFile[] =>
  fs
    .readdirSync(current, { recursive: true, encoding: 'utf8' })
    .filter((name) => fs.statSync(path.join(current, name)).isFile())
    .sort()
    .map((name) => ({
      path: name,
      mode: fs.statSync(path.join(current, name)).mode & 0o7777,
      content: fs.readFileSync(path.join(current, name), 'utf8'),
    }))

const sorted = (files: readonly OverlayFile[]): readonly OverlayFile[] =>
  [...files].sort((a, b) => (a.path < b.path ? -1 : 1))

const applier = path.join(import.meta.dirname, 'overlay-applier.ts')

test('an agent that is killed at any step of replacing the files leaves the old set or the new one, and the next replaces them', (t) => {
  const moments = overlaySteps.flatMap((step) =>
    (step === 'file written' ? [1, 2] : [1]).map((count) => ({ step, count })),
  )
  for (const { step, count } of moments) {
    const state = tempFolder(t)
    const files = openOverlayFiles(state, plainDigest)
    assert.deepEqual(files.apply(before), { kind: 'applied' })
    const killed = spawnSync(process.execPath, [applier, state, step, String(count)], { input: JSON.stringify(after) })
    assert.equal(killed.signal, 'SIGKILL', `${step}: ${killed.stderr.toString()}`)
    const whole = step === 'switched' || step === 'old removed' ? after : before
    assert.deepEqual(found(files.current), sorted(whole), step)
    assert.equal(files.areInForce(after), whole === after, step)
    assert.deepEqual(files.apply(after), { kind: 'applied' })
    assert.deepEqual(found(files.current), sorted(after), step)
    assert.equal(fs.readdirSync(path.join(state, 'overlay')).length, 2, `after ${step} something is left over`)
  }
})

test('a service of another user reads the files whose mode lets it, whatever the umask is, and nothing else of the state', (t) => {
  if (withPeer(t, 'root') === null) return
  const state = path.join(tempFolder(t), 'state')
  fs.chmodSync(path.dirname(state), 0o755)
  const umask = process.umask(0o077)
  const files = openOverlayFiles(state, plainDigest)
  try {
    fs.mkdirSync(state)
    fs.writeFileSync(path.join(state, 'credentials.json'), 'secret', { mode: 0o600 })
    assert.deepEqual(files.apply([...after, { path: 'etc/open.conf', mode: 0o644, content: 'open\n' }]), {
      kind: 'applied',
    })
  } finally {
    process.umask(umask)
  }
  const asNobody = (file: string) => {
    const { status, stdout } = spawnSync('cat', [file], { uid: 65534, gid: 65534, encoding: 'utf8' })
    return status === 0 ? stdout : null
  }
  assert.equal(asNobody(path.join(files.current, 'etc/open.conf')), null)
  files.letOthersIn()
  assert.equal(asNobody(path.join(files.current, 'etc/open.conf')), 'open\n')
  assert.equal(asNobody(path.join(files.current, 'etc/app.conf')), null, 'its mode is 0600')
  assert.equal(asNobody(path.join(state, 'credentials.json')), null)
  assert.equal(fs.statSync(state).mode & 0o777, 0o711)
})

test('files that are written anew are in force under the same name as before', (t) => {
  const files = openOverlayFiles(tempFolder(t), plainDigest)
  files.apply(before)
  for (let time = 0; time < 3; time++) {
    fs.writeFileSync(path.join(files.current, 'etc/app.conf'), 'colour = red\n')
    assert.deepEqual(files.apply(before), { kind: 'applied' })
    assert.ok(files.areInForce(before))
    assert.deepEqual(found(files.current), sorted(before))
  }
})

test('on a full disk nothing is switched, and what could not be kept takes no room', (t) => {
  if (withPeer(t, 'tmpfs') === null) return
  const disk = mountTmpfs(t, path.join(tempFolder(t), 'small'), 1 << 20)
  const files = openOverlayFiles(disk.folder, plainDigest)
  files.apply(before)
  disk.fill(8 * 1024)
  const names = fs.readdirSync(path.join(disk.folder, 'overlay'))
  const applied = files.apply([{ path: 'big', mode: 0o600, content: 'x'.repeat(40_000) }])
  assert.equal(applied.kind, 'not-applied')
  assert.match(applied.kind === 'not-applied' ? applied.detail : '', /ENOSPC/)
  assert.deepEqual(found(files.current), sorted(before))
  assert.deepEqual(fs.readdirSync(path.join(disk.folder, 'overlay')), names)
  disk.free()
  assert.deepEqual(files.apply(after), { kind: 'applied' })
})

test('no path leads out of the folder, and no link that lies there is followed', (t) => {
  const outside = tempFolder(t)
  const state = tempFolder(t)
  const files = openOverlayFiles(state, plainDigest)
  for (const place of ['../x', '/etc/x', 'a/../../x', 'a//b', '.', '']) {
    assert.equal(files.apply([{ path: place, mode: 0o600, content: '' }]).kind, 'not-applied', place)
  }
  assert.equal(files.apply([...before, ...before]).kind, 'not-applied')
  files.apply(before)
  // An attacker places links where the next set will be written, and where the link to it is made.
  fs.symlinkSync(outside, path.join(state, 'overlay', 'current.new'))
  fs.rmSync(path.join(state, 'overlay', 'current'))
  fs.mkdirSync(path.join(state, 'overlay', 'current'))
  assert.deepEqual(files.apply(after), { kind: 'applied' })
  assert.deepEqual(found(files.current), sorted(after))
  assert.deepEqual(fs.readdirSync(outside), [])

  const elsewhere = tempFolder(t)
  fs.symlinkSync(outside, path.join(elsewhere, 'overlay'))
  assert.equal(openOverlayFiles(elsewhere, plainDigest).apply(before).kind, 'not-applied')
  assert.deepEqual(fs.readdirSync(outside), [])
})

test('every way in which a file can differ from what was applied is named', (t) => {
  const files = openOverlayFiles(tempFolder(t), plainDigest)
  const drift = (): readonly string[] => driftOfFiles(files.current, files.areInForce(before), before)
  const conf = path.join(files.current, 'etc/app.conf')
  const differs = (how: () => void): readonly string[] => {
    files.apply(before)
    assert.deepEqual(drift(), [])
    how()
    return drift()
  }
  assert.deepEqual(
    differs(() => fs.writeFileSync(conf, 'colour = pink\n')),
    ['file etc/app.conf: changed'],
  )
  assert.deepEqual(
    differs(() => fs.chmodSync(conf, 0o666)),
    ['file etc/app.conf: has other permissions'],
  )
  assert.deepEqual(
    differs(() => fs.rmSync(path.join(files.current, 'etc'), { recursive: true })),
    ['file etc/app.conf: missing'],
  )
  assert.deepEqual(
    differs(() => {
      fs.renameSync(conf, `${conf}.other`)
      fs.symlinkSync(`${conf}.other`, conf)
    }),
    ['file etc/app.conf: is a link or no file'],
  )
  assert.deepEqual(
    differs(() => {
      fs.rmSync(files.current)
      fs.symlinkSync('/tmp', files.current)
    }),
    ['overlay/current: leads elsewhere'],
  )
})
