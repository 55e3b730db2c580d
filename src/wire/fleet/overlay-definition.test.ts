import assert from 'node:assert/strict'
import { test } from 'node:test'
import { definitionOfService, listedNameOfCheck, textOfCheck, textOfService } from './overlay-definition.ts'

const terms = {
  user: 'app',
  environment: { A: '1', B: '2' },
  working_directory: '{overlay}/etc',
  restart: 'always' as const,
  memory_bytes: 2 ** 30,
  cpus: 1.5,
  open_files: null,
}
const service = { name: 'app', command: ['/usr/bin/app', '-v'], terms }

test('the text of a service does not depend on the order in which its fields and variables came', () => {
  const { user, environment, ...rest } = terms
  const turned = { ...rest, environment: { B: environment.B, A: environment.A }, user }
  const other = { terms: turned, command: service.command, name: 'app' }
  assert.equal(textOfService(definitionOfService(other)), textOfService(definitionOfService(service)))
})

test('whatever differs between two services makes another text', () => {
  const texts = [
    service,
    { ...service, name: 'other' },
    { ...service, command: ['/usr/bin/app'] },
    { ...service, command: ['/usr/bin/app', '-', 'v'] },
    { name: 'app', command: service.command },
    { ...service, terms: { ...terms, user: null } },
    { ...service, terms: { ...terms, environment: { A: '1' } } },
    { ...service, terms: { ...terms, environment: { A: '2', B: '2' } } },
    { ...service, terms: { ...terms, working_directory: null } },
    { ...service, terms: { ...terms, restart: 'never' as const } },
    { ...service, terms: { ...terms, memory_bytes: null } },
    { ...service, terms: { ...terms, cpus: 2 } },
    { ...service, terms: { ...terms, open_files: 64 } },
  ].map((one) => textOfService(definitionOfService(one)))
  assert.equal(new Set(texts).size, texts.length)
  assert.ok(!texts.includes(textOfCheck({ name: 'app', command: service.command })))
})

test('what a later plane sends besides is not signed by this one, and does not keep the rest from fitting', () => {
  const more = { ...service, terms: { ...terms, nice: 5 } }
  assert.equal(textOfService(definitionOfService(more)), textOfService(definitionOfService(service)))
})

test('agent.toml lists a check under its own name, and the reader of the kernel log under that of the program', () => {
  assert.equal(listedNameOfCheck({ name: 'disks', command: ['/usr/bin/disks'] }), 'disks')
  assert.equal(listedNameOfCheck({ name: 'kernel', command: ['muster:kernel-errors'] }), 'kernel-errors')
})
