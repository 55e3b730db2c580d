import assert from 'node:assert/strict'
import { test } from 'node:test'
import { overlayChanges, noOverlay, type Overlay } from './overlay.ts'

const overlay = (files: Record<string, string>, services: Record<string, string>): Overlay => ({
  files: Object.entries(files).map(([path, content]) => ({ path, mode: 0o644, content })),
  services: Object.entries(services).map(([name, program]) => ({ name, command: [program] })),
})

test('what has become of an overlay names files and services, and nothing of what is in them', () => {
  const before = overlay({ 'etc/a': 'secret', 'etc/b': 'b' }, { one: '/bin/one', two: '/bin/two' })
  const after = overlay({ 'etc/a': 'another', 'etc/c': 'c' }, { two: '/bin/two', one: '/bin/1' })
  assert.deepEqual(overlayChanges(before, after), [
    'file etc/b removed',
    'file etc/a changed',
    'file etc/c added',
    'service one changed',
  ])
  assert.deepEqual(overlayChanges(noOverlay, before).length, 4)
  assert.deepEqual(overlayChanges(before, before), [])
})
