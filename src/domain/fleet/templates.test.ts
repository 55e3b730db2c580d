import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noOverlay, usualTerms, type Overlay } from './overlay.ts'
import { fillTemplates } from './templates.ts'

const values = { id: 'gpu-001', domain: 'example.org', vcluster: 'training', tags: ['h100', 'rack:7'] }

const overlay: Overlay = {
  ...noOverlay,
  files: [
    { path: 'etc/a', mode: 0o644, content: '{id}.{domain} in {vcluster}: {tags}\n${HOME} {{id}} {other} {ID}' },
    { path: 'etc/b', mode: 0o644, content: '{id}' },
  ],
  templates: ['etc/a'],
  services: [
    { name: 'one', command: ['/bin/one', '--node={id}', '{overlay}/etc/a'] },
    { name: 'two', command: ['/bin/two', '{id}'] },
  ],
  terms: [{ ...usualTerms('one'), environment: { NODE: '{id}' }, template: true }],
}

test('values of the node are filled in where a file or a service says so, and nothing else is touched', () => {
  const { files, services, terms } = fillTemplates(overlay, values)
  assert.equal(files[0]?.content, 'gpu-001.example.org in training: h100,rack:7\n${HOME} {gpu-001} {other} {ID}')
  assert.equal(files[1]?.content, '{id}')
  assert.deepEqual(services[0]?.command, ['/bin/one', '--node=gpu-001', '{overlay}/etc/a'])
  assert.deepEqual(services[1]?.command, ['/bin/two', '{id}'])
  assert.deepEqual(terms[0]?.environment, { NODE: 'gpu-001' })
})

test('a value that looks like a template is not filled in again', () => {
  const { files } = fillTemplates(overlay, { ...values, id: '{domain}' })
  assert.match(files[0]?.content ?? '', /^\{domain\}\.example\.org/)
})

test('a tag that no operator could have given is filled in nowhere', () => {
  const tags = ['h100', '--exec=/tmp/x', 'a b', 'rack:7\n', '-x', '{id}', 'r']
  const { files } = fillTemplates(overlay, { ...values, tags })
  assert.match(files[0]?.content ?? '', /in training: h100,r\n/)
})
