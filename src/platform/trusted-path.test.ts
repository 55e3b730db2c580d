import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { tempFolder } from '../../test/process/temp-folder.ts'
import { faultOfPath, readTrustedFile, type Expected, type Trust } from './trusted-path.ts'

const uid = process.geteuid?.() ?? 0
const byHand: Trust = { uid, stickyFolders: true }
const folder: Expected = { kind: 'folder', links: 'refused' }
const file: Expected = { kind: 'file', links: 'followed' }

test('a path is trusted as long as nobody else can change one of its components', (t) => {
  const top = fs.realpathSync(tempFolder(t))
  const place = path.join(top, 'a', 'b')
  fs.mkdirSync(place, { recursive: true, mode: 0o755 })
  assert.equal(faultOfPath(place, byHand, folder), null)
  fs.chmodSync(path.join(top, 'a'), 0o770)
  assert.match(
    faultOfPath(place, byHand, folder) ?? '',
    /\/a can be written by other users than its owner \(mode 770\)$/,
  )
  fs.chmodSync(path.join(top, 'a'), 0o1777)
  assert.equal(faultOfPath(place, byHand, folder), null, 'what is in a sticky folder stays where it is')
  assert.match(faultOfPath(path.join(top, 'a'), byHand, folder) ?? '', /mode 1777/)
  assert.match(faultOfPath(place, { uid, stickyFolders: false }, folder) ?? '', /can be written by other users/)
})

test('what belongs to another user than root or this one is not trusted', (t) => {
  const top = fs.realpathSync(tempFolder(t))
  if (uid === 0) fs.chownSync(top, 65534, 65534)
  const trust = { uid: uid === 0 ? 0 : uid + 1, stickyFolders: true }
  assert.match(faultOfPath(top, trust, folder) ?? '', /belongs to user \d+, not to root/)
})

test('links are refused, or followed where they belong to a trusted user and lead to a trusted place', (t) => {
  const top = fs.realpathSync(tempFolder(t))
  const real = path.join(top, 'real')
  fs.mkdirSync(real, { mode: 0o755 })
  fs.writeFileSync(path.join(real, 'file'), 'text', { mode: 0o644 })
  fs.symlinkSync('real', path.join(top, 'link'))
  fs.symlinkSync('../link/file', path.join(real, 'again'))
  assert.match(faultOfPath(path.join(top, 'link'), byHand, folder) ?? '', /\/link is a link/)
  assert.equal(faultOfPath(path.join(top, 'link', 'again'), byHand, file), null)
  assert.deepEqual(readTrustedFile(path.join(top, 'link', 'again'), byHand, 10), { text: 'text' })
  fs.chmodSync(real, 0o777)
  assert.match(faultOfPath(path.join(top, 'link', 'again'), byHand, file) ?? '', /\/real can be written/)
  fs.symlinkSync('circle', path.join(top, 'circle'))
  assert.match(faultOfPath(path.join(top, 'circle'), byHand, file) ?? '', /more than 40 links/)
})

test('a file is read if it is there, is a file, and is short enough', (t) => {
  const top = fs.realpathSync(tempFolder(t))
  const place = path.join(top, 'file')
  assert.deepEqual(readTrustedFile(place, byHand, 4), { fault: `${place} does not exist` })
  assert.deepEqual(readTrustedFile('file', byHand, 4), { fault: 'file is not a full path' })
  assert.deepEqual(readTrustedFile(top, byHand, 4), { fault: `${top} is not a file` })
  fs.writeFileSync(place, 'long text')
  assert.deepEqual(readTrustedFile(place, byHand, 4), { fault: `${place} has more than 4 bytes` })
})
