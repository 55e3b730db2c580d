import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import type { OverlayFile } from '#domain/fleet/overlay.ts'
import { systemRandom } from '#platform/random.ts'
import { tempFolder } from '../../../test/process/temp-folder.ts'
import { openSecretDigest, plainDigest, type Digest } from './secret-digest.ts'
import { digestOfFiles, isStartedAs, wantedServices, type WantedService } from './wanted-services.ts'

const file = (path: string, content: string): OverlayFile => ({ path, mode: 0o644, content })
const secretDigest: Digest = (value) => plainDigest(['key', value])

const digest = (command: readonly string[], files: readonly OverlayFile[]): string | undefined =>
  wantedServices({ services: [{ name: 'app', command }], files }, '/state/overlay/current', secretDigest)[0]?.digest

const first = [file('etc/app.conf', 'a'), file('etc/other.conf', 'b'), file('bin/app', 'c')]
const otherChanged = [file('etc/app.conf', 'a'), file('etc/other.conf', 'changed'), file('bin/app', 'c')]

test('the folder of the files takes the place of {overlay}, as often as it is there', () => {
  const [service] = wantedServices(
    { services: [{ name: 'app', command: ['{overlay}/bin/app', '--conf={overlay}/etc:{overlay}'] }], files: [] },
    '/s/current',
    secretDigest,
  )
  assert.deepEqual(
    [service?.command, service?.needsFiles],
    [['/s/current/bin/app', '--conf=/s/current/etc:/s/current'], true],
  )
})

test('a service that names no files does not depend on any', () => {
  assert.equal(digest(['chronyd', '-d'], first), digest(['chronyd', '-d'], []))
  assert.notEqual(digest(['chronyd', '-d'], first), digest(['chronyd', '-n'], first))
})

test('a service depends on the files it names, and on those below a folder it names', () => {
  const one = ['app', '{overlay}/etc/app.conf']
  assert.equal(digest(one, first), digest(one, otherChanged))
  const folder = ['app', '--conf-dir={overlay}/etc/']
  assert.notEqual(digest(folder, first), digest(folder, otherChanged))
  assert.equal(digest(folder, first), digest(folder, [...first.slice(0, 2), file('bin/app', 'changed')]))
})

test('a service that names the whole folder, or what is none of its files, depends on all of them', () => {
  for (const command of [
    ['app', '{overlay}'],
    ['app', '{overlay}/var/run.pid'],
    ['app', '{overlay}/etc/app.conf.d'],
  ]) {
    assert.notEqual(digest(command, first), digest(command, otherChanged), command.join(' '))
  }
})

test('the same files in another order are the same files; another permission makes others', () => {
  assert.equal(digestOfFiles(first, secretDigest), digestOfFiles([...first].reverse(), secretDigest))
  assert.notEqual(
    digestOfFiles(first, secretDigest),
    digestOfFiles(
      first.map((one) => ({ ...one, mode: 0o600 })),
      secretDigest,
    ),
  )
})

const terms = {
  ...{ user: null, environment: { PIN: '4711' }, working_directory: null, restart: 'always' as const },
  ...{ memory_bytes: null, cpus: null, open_files: null },
} as const
const started = (
  digest: Digest,
  files: readonly OverlayFile[],
  own: { readonly terms?: typeof terms },
): WantedService => {
  const services = [{ name: 'app', command: ['app', '{overlay}/etc/app.conf'], ...own }]
  return wantedServices({ services, files }, '/s/current', digest)[0] ?? assert.fail()
}

test('what may hold a secret cannot be guessed from a digest, which is the same for every agent of this machine', (t) => {
  const folder = tempFolder(t)
  const here = openSecretDigest(folder, systemRandom)
  const elsewhere = openSecretDigest(tempFolder(t), systemRandom)
  const open = [file('etc/app.conf', 'a')]
  const closed = [{ ...file('etc/app.conf', 'a'), mode: 0o640 }]
  for (const [files, own] of [
    [open, { terms }],
    [closed, {}],
  ] as const) {
    const { digest } = started(here, files, own)
    assert.match(digest, /^[0-9a-f]{16}$/)
    assert.notEqual(digest, started(elsewhere, files, own).digest)
    assert.equal(digest, started(openSecretDigest(folder, systemRandom), files, own).digest)
  }
  assert.notEqual(digestOfFiles(closed, here), digestOfFiles(closed, elsewhere))
  assert.equal(started(here, open, {}).digest, started(elsewhere, open, {}).digest)
  const key = path.join(folder, 'digest-key')
  assert.equal(fs.statSync(key).mode & 0o777, 0o600)
  // The disk does not give it now.
  fs.renameSync(key, `${key}.aside`)
  fs.mkdirSync(key)
  const meanwhile = openSecretDigest(folder, systemRandom)
  assert.notEqual(meanwhile('secret'), here('secret'))
  assert.equal(meanwhile('secret'), meanwhile('secret'))
  fs.rmdirSync(key)
  fs.renameSync(`${key}.aside`, key)
  assert.equal(openSecretDigest(folder, systemRandom)('secret'), here('secret'))
})

test('a service that an agent of 0.3 has started is the same after the upgrade', () => {
  const closed = [{ ...file('etc/app.conf', 'a'), mode: 0o640 }]
  const former = plainDigest([['app', '{overlay}/etc/app.conf'], [['etc/app.conf', 0o640, 'a']]])
  const now = started(secretDigest, closed, {})
  assert.notEqual(now.digest, former)
  assert.ok(isStartedAs(former, now) && isStartedAs(now.digest, now))
  assert.ok(!isStartedAs(former, started(secretDigest, closed, { terms })))
})
