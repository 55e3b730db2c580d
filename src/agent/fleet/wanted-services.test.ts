import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OverlayFile } from '#domain/fleet/overlay.ts'
import { digestOfFiles, wantedServices } from './wanted-services.ts'

const file = (path: string, content: string): OverlayFile => ({ path, mode: 0o644, content })

const digest = (command: readonly string[], files: readonly OverlayFile[]): string | undefined =>
  wantedServices({ services: [{ name: 'app', command }], files }, '/state/overlay/current')[0]?.digest

const first = [file('etc/app.conf', 'a'), file('etc/other.conf', 'b'), file('bin/app', 'c')]
const otherChanged = [file('etc/app.conf', 'a'), file('etc/other.conf', 'changed'), file('bin/app', 'c')]

test('the folder of the files takes the place of {overlay}, as often as it is there', () => {
  const [service] = wantedServices(
    { services: [{ name: 'app', command: ['{overlay}/bin/app', '--conf={overlay}/etc:{overlay}'] }], files: [] },
    '/s/current',
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
  assert.equal(digestOfFiles(first), digestOfFiles([...first].reverse()))
  assert.notEqual(digestOfFiles(first), digestOfFiles(first.map((one) => ({ ...one, mode: 0o600 }))))
})
