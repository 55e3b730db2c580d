// What linters of OpenAPI documents ask for: the recommended rules of @redocly/cli, without its 15 MB.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { refusals } from '#domain/core/refusal-table.ts'
import { everyListener } from '#wire/listeners.ts'
import { openApiText } from '../../scripts/openapi.ts'

type Operation = {
  readonly operationId: string
  readonly summary: string
  readonly tags: readonly string[]
  readonly servers?: readonly { readonly url: string }[]
  readonly security: readonly Readonly<Record<string, readonly string[]>>[]
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly schema: object }[]
  readonly responses: Readonly<Record<string, { readonly $ref?: string; readonly description?: string }>>
}
type Document = {
  readonly info: { readonly license: { readonly identifier: string } }
  readonly servers: readonly { readonly url: string }[]
  readonly tags: readonly { readonly name: string; readonly description: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: Readonly<Record<string, Readonly<Record<string, { readonly description?: string }>>>>
}

const text = openApiText()
const document = JSON.parse(text) as Document
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
)

test('there is a server, and a licence', () => {
  assert.equal(document.info.license.identifier, 'Apache-2.0')
  assert.equal(document.servers.length, 1)
})

test('a call of a machine is made elsewhere than one of an operator', () => {
  for (const { path, operation } of operations) {
    const listeners = everyListener.filter(({ name }) => operation.tags.includes(name))
    const urls = (operation.servers ?? document.servers).map(({ url }) => url)
    assert.deepEqual(
      urls,
      listeners.map(({ server }) => server.url),
      path,
    )
  }
})

test('every call says what it does, what success is, and how it refuses', () => {
  for (const { path, method, operation } of operations) {
    const name = `${method} ${path}`
    assert.ok(operation.summary.length > 0 && !operation.summary.endsWith('.'), name)
    assert.match(operation.operationId, /^[A-Za-z0-9]+$/, name)
    const statuses = Object.keys(operation.responses)
    assert.ok(
      statuses.some((status) => /^[12]/.test(status)),
      name,
    )
    assert.ok(statuses.includes('400'), name)
    assert.equal(statuses.includes('401'), operation.security.length > 0, name)
  }
})

test('every parameter of a path is declared, and no two addresses differ in the names of parameters only', () => {
  for (const { path, method, operation } of operations) {
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
    const declared = operation.parameters.filter((one) => one.in === 'path').map(({ name }) => name)
    assert.deepEqual(declared, inPath, `${method} ${path}`)
  }
  const shapes = Object.keys(document.paths).map((path) => path.replace(/\{\w+\}/g, '{}'))
  assert.equal(new Set(shapes).size, shapes.length)
})

const isParameter = (segment: string): boolean => segment.startsWith('{')

/** Each has a parameter where the other has a word, so that one address fits both. */
const isAmbiguous = (one: string, other: string): boolean => {
  const [left, right] = [one.split('/'), other.split('/')]
  if (left.length !== right.length) return false
  const pairs = left.map((segment, at) => [segment, right[at] ?? ''] as const)
  const fits = pairs.every(([a, b]) => a === b || isParameter(a) || isParameter(b))
  const has = (which: 0 | 1) =>
    pairs.some((pair) => isParameter(pair[which]) && !isParameter(pair[which === 0 ? 1 : 0]))
  return fits && has(0) && has(1)
}

test('no address fits two paths of which neither is the more exact one', () => {
  const paths = Object.keys(document.paths)
  assert.deepEqual(
    paths.flatMap((one, at) => paths.slice(at + 1).filter((other) => isAmbiguous(one, other))),
    [],
  )
  assert.ok(isAmbiguous('/v1/workers/tasks/{id}', '/v1/workers/{id}/revoke'))
  assert.ok(!isAmbiguous('/v1/workers/enroll', '/v1/workers/{id}'))
})

test('every component is used, and every way to prove oneself is defined', () => {
  for (const [group, members] of Object.entries(document.components)) {
    for (const name of Object.keys(members)) {
      const isUsed =
        group === 'securitySchemes'
          ? operations.some(({ operation }) => operation.security.some((one) => name in one))
          : text.includes(`"#/components/${group}/${name}"`)
      assert.ok(isUsed, `${group}/${name}`)
    }
  }
  const schemes = operations.flatMap(({ operation }) => operation.security.flatMap((one) => Object.keys(one)))
  assert.deepEqual(
    [...new Set(schemes)].filter((name) => document.components['securitySchemes']?.[name] === undefined),
    [],
  )
})

test('every tag is described', () => {
  const known = document.tags.filter(({ description }) => description.length > 0).map(({ name }) => name)
  for (const { path, operation } of operations)
    for (const tag of operation.tags) assert.ok(known.includes(tag), `${tag} of ${path}`)
})

test('every code of the refusal table is in the description of its status', () => {
  const described = Object.values(document.components['responses'] ?? {}).map(({ description }) => description ?? '')
  // Given to addresses and methods that have no call.
  const elsewhere = ['METHOD_NOT_ALLOWED']
  for (const code of Object.keys(refusals).filter((name) => !elsewhere.includes(name)))
    assert.equal(described.filter((one) => one.includes(`\`${code}\``)).length, 1, code)
})
