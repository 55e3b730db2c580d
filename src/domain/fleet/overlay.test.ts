import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isSameOverlay, overlayChanges, overlayProblem, noOverlay, usualTerms, type Overlay } from './overlay.ts'

const overlay = (files: Record<string, string>, services: Record<string, string>): Overlay => ({
  ...noOverlay,
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

const check = { name: 'disks', command: ['muster:read-only'], intervalMs: 60_000, timeoutMs: 10_000 }

test('how a service runs, whether a file is a template, and checks are part of it', () => {
  const before = overlay({ 'etc/a': 'a' }, { one: '/bin/one' })
  const terms = [{ ...usualTerms('one'), environment: { A: '1', B: '2' } }]
  const after: Overlay = { ...before, terms, templates: ['etc/a'], checks: [check] }
  assert.deepEqual(overlayChanges(before, after), ['file etc/a changed', 'service one changed', 'check disks added'])
  assert.equal(isSameOverlay(before, after), false)
  const otherOrder = { ...after, terms: [{ ...usualTerms('one'), environment: { B: '2', A: '1' } }] }
  assert.ok(isSameOverlay(after, otherOrder), 'the order in which an environment was written does not count')
})

test('a check that could not be made is refused, with its place', () => {
  const problem = (changes: object) => overlayProblem({ ...noOverlay, checks: [{ ...check, ...changes }] })
  assert.equal(problem({}), null)
  assert.deepEqual(problem({ timeoutMs: 61_000 })?.field, 'checks.0.timeoutMs')
  assert.match(problem({ command: ['muster:raid'] })?.why ?? '', /no check muster:raid; there are muster:read-only/)
})

test('a template has to fit every node', () => {
  const long = overlay({ a: '{tags}'.repeat(20) }, {})
  assert.equal(overlayProblem(long), null)
  assert.match(overlayProblem({ ...long, templates: ['a'] })?.why ?? '', /with its templates filled in/)
})
