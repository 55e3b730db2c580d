import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { tempFolder } from '../process/temp-folder.ts'
import { placeOfBuilt } from './built-peer.ts'
import { packageOf, peer, peerNames, withPeer } from './peer.ts'

test('every peer is either there, with a path, or missing for a stated reason', () => {
  for (const name of peerNames) {
    const it = peer(name)
    assert.ok('path' in it ? it.path.startsWith('/') : it.missing.length > 0, name)
  }
})

test('every Debian package listed brings a peer some test can ask for', () => {
  const names: readonly string[] = peerNames
  for (const name of Object.keys(packageOf)) assert.ok(names.includes(name), name)
})

test('a missing peer skips its test with the reason, and fails it in CI', () => {
  const before = { path: process.env['PATH'], ci: process.env['CI'] }
  const skipped: (string | undefined)[] = []
  const context = { skip: (why?: string) => void skipped.push(why) }
  try {
    process.env['PATH'] = '/nonexistent'
    delete process.env['CI']
    assert.equal(withPeer(context, 'openssl'), null)
    assert.deepEqual(skipped, ['openssl is not installed'])
    process.env['CI'] = '1'
    assert.throws(() => withPeer(context, 'openssl'), /CI has to have every peer: openssl is not installed/)
  } finally {
    restore('PATH', before.path)
    restore('CI', before.ci)
  }
})

test('a peer that is built says whether Go is there to build it, and is found where builds are kept', async (t) => {
  const { PATH: searched, XDG_CACHE_HOME: kept } = process.env
  const cache = tempFolder(t)
  try {
    process.env['XDG_CACHE_HOME'] = cache
    process.env['PATH'] = '/nonexistent'
    assert.deepEqual(peer('step-ca'), { missing: 'step-ca is not built, which takes Go' })
    fs.writeFileSync(path.join(cache, 'go'), '')
    process.env['PATH'] = cache
    assert.deepEqual(peer('step-ca'), { missing: 'step-ca is not built: npm test does that' })
    fs.mkdirSync(path.dirname(placeOfBuilt('step-ca')))
    fs.writeFileSync(placeOfBuilt('step-ca'), '')
    assert.deepEqual(peer('step-ca'), { path: placeOfBuilt('step-ca') })
    assert.ok(placeOfBuilt('step-ca').startsWith(cache))
  } finally {
    restore('PATH', searched)
    restore('XDG_CACHE_HOME', kept)
  }
})

const restore = (name: string, value: string | undefined): void => {
  if (value === undefined) delete process.env[name]
  else process.env[name] = value
}
