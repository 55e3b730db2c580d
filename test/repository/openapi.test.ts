// The description of the API is the API: generated, up to date, and its examples fit.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { fastify } from 'fastify'
import { Check } from 'typebox/value'
import { nodeRoutes, type NodeRouteParts } from '#plane/boot/node-routes.ts'
import { operatorRoutes, type OperatorRouteParts, type OperatorRouteSources } from '#plane/boot/operator-routes.ts'
import { recoveryRoutes, type RecoveryRouteParts } from '#plane/recovery/recovery-routes.ts'
import { everyListener, nodeListener, operatorListener, recoveryListener } from '#wire/listeners.ts'
import type { Endpoint } from '#wire/core/endpoint.ts'
import { filesBelow, root } from '../../scripts/repository.ts'
import { apiPage, apiPageText, openApiFile, openApiText } from '../../scripts/openapi.ts'
import type { Core } from '#plane/core/core.ts'

type Operation = { readonly operationId: string; readonly security: readonly object[]; readonly responses: object }
type Document = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, object>> }
}

const document = JSON.parse(openApiText()) as Document
// Listing routes asks nothing of what they are given.
const bound = [
  { listener: nodeListener, routes: nodeRoutes({} as Core, { limits: {}, channel: {} } as NodeRouteParts) },
  { listener: recoveryListener, routes: recoveryRoutes({} as Core, {} as RecoveryRouteParts) },
  {
    listener: operatorListener,
    routes: operatorRoutes({} as Core, {} as OperatorRouteParts, {} as OperatorRouteSources),
  },
]
const routes = bound.flatMap((one) => one.routes)
const nameOf = ({ method, path: place }: Pick<Endpoint, 'method' | 'path'>): string => `${method} ${place}`

test('what a listener binds is what is declared for it, and nothing else', () => {
  assert.deepEqual(
    bound.map(({ listener }) => listener),
    everyListener,
  )
  for (const { listener, routes: own } of bound) {
    assert.deepEqual(
      own.map(({ handle: _handle, ...declared }) => declared),
      listener.endpoints,
      listener.name,
    )
  }
})

test('what calls take is described by JSON schemas, which a plane no longer checks', async () => {
  for (const { listener, routes: own } of bound) {
    const app = fastify({ exposeHeadRoutes: false })
    for (const { method, path: url, params, query, body } of own)
      app.route({
        method,
        url,
        schema: {
          ...(params !== undefined && { params }),
          ...(query !== undefined && { querystring: query }),
          ...(body !== undefined && { body }),
        },
        handler: () => null,
      })
    await assert.doesNotReject(async () => app.ready(), listener.name)
  }
  const wrong = fastify()
  wrong.post('/', { schema: { body: { type: 'text' } } }, () => null)
  await assert.rejects(async () => wrong.ready(), /schema is invalid/)
})

test('whatever wire/ declares is bound to a listener', async () => {
  const listed = new Set<unknown>(everyListener.flatMap(({ endpoints }) => endpoints))
  const declarations = filesBelow(path.join(root, 'src/wire'), root).filter((file) => file.endsWith('-api.ts'))
  let found = 0
  for (const file of declarations) {
    const exported = (await import(path.join(root, file))) as Record<string, object>
    for (const [name, group] of Object.entries(exported).filter(([called]) => called.endsWith('Api'))) {
      for (const [key, declared] of Object.entries(group)) {
        assert.ok(listed.has(declared), `${name}.${key} of ${file}`)
        found += 1
      }
    }
  }
  assert.equal(found, listed.size)
})

test('no caller writes a path of the API: it is in the declaration', () => {
  const sources = filesBelow(path.join(root, 'src'), root).filter((file) => /(?<!\.test)\.ts$/.test(file))
  assert.ok(sources.some((file) => file.startsWith('src/wire/')))
  const written = sources.filter(
    (file) => !file.startsWith('src/wire/') && /['"`]\/v1\//.test(fs.readFileSync(path.join(root, file), 'utf8')),
  )
  assert.deepEqual(written, [])
})

test('the parameters in a path are those of its schema', () => {
  for (const declared of everyListener.flatMap(({ endpoints }) => endpoints)) {
    const inPath = [...declared.path.matchAll(/:(\w+)/g)].map(([, name]) => name)
    const { properties = {} } = (declared.params ?? {}) as { properties?: object }
    assert.deepEqual(Object.keys(properties), inPath, nameOf(declared))
  }
})

test('docs/openapi.json and the tables of docs/API.md are what scripts/openapi.ts writes', async () => {
  const advice = 'run: node scripts/openapi.ts'
  assert.ok(fs.readFileSync(openApiFile, 'utf8') === openApiText(), advice)
  const page = fs.readFileSync(apiPage, 'utf8')
  assert.ok(page === (await apiPageText(page)), advice)
})

test('every route of every listener is described, with what it asks for and how it refuses', () => {
  for (const { method, path: place, access } of routes) {
    const operation = document.paths[place.replace(/:(\w+)/g, '{$1}')]?.[method.toLowerCase()]
    assert.ok(operation !== undefined, `${method} ${place}`)
    assert.equal(operation.security.length === 0, access === 'anyone', `${method} ${place}`)
    assert.ok('default' in operation.responses)
  }
})

test('no two operations share an id', () => {
  const ids = Object.values(document.paths).flatMap((path) => Object.values(path).map(({ operationId }) => operationId))
  // What two listeners answer alike is one operation.
  assert.equal(ids.length, new Set(routes.map(nameOf)).size)
  assert.equal(new Set(ids).size, ids.length)
})

test('every reference points at something', () => {
  const references = openApiText().match(/#\/components\/[A-Za-z]+\/[A-Za-z]+/g) ?? []
  assert.ok(references.length > 50)
  for (const reference of references) {
    const [, , group, name] = reference.split('/')
    const components = document.components as unknown as Record<string, Record<string, object>>
    assert.ok(components[group!]?.[name!] !== undefined, reference)
  }
})

test('a file is described with the content type that its declaration says and its handler sends', () => {
  const files = everyListener.flatMap(({ endpoints }) => endpoints).filter(({ file }) => file !== undefined)
  const described = files.map(({ path: place, file }) => {
    const responses = document.paths[place.replace(/:(\w+)/g, '{$1}')]?.['get']?.responses as
      Record<string, { readonly content: object }> | undefined
    for (const status of ['200', '206'])
      assert.deepEqual(Object.keys(responses?.[status]?.content ?? {}), [file?.contentType], place)
    return `${place} ${file?.contentType}`
  })
  assert.deepEqual(described.toSorted(), [
    '/v1/agent/:digest application/gzip',
    '/v1/nodes/:id/task-files/:digest application/octet-stream',
  ])
})

/** `old -> new` of every property and parameter that the description marks as deprecated. */
const markedIn = (value: unknown): string[] => {
  if (Array.isArray(value)) return value.flatMap(markedIn)
  if (typeof value !== 'object' || value === null) return []
  const {
    in: where,
    name,
    schema,
  } = value as { readonly in?: string; readonly name?: string; readonly schema?: object }
  if (where === 'query' && 'deprecated' in value) return markOf(name ?? '', schema)
  return Object.entries(value).flatMap(([key, one]) =>
    typeof one === 'object' && one !== null && 'deprecated' in one && !('in' in one) ? markOf(key, one) : markedIn(one),
  )
}
const markOf = (name: string, schema: object = {}): string[] => {
  const { deprecated, description = '' } = schema as { readonly deprecated?: boolean; readonly description?: string }
  assert.equal(deprecated, true, name)
  const [, instead, release] = /^Use `(\w+)`\. Dropped in (\S+)\.$/.exec(description) ?? []
  return [`${name} -> ${instead}, ${release}`]
}

test('what docs/API.md lists as deprecated is what the description marks, with the release that drops it', () => {
  const [, section = ''] = fs.readFileSync(apiPage, 'utf8').split('\n### Deprecated\n')
  const release = /until (\S+), which drops them/.exec(section)?.[1]
  const [, , ...rows] = (section.split('\n<!--')[0] ?? '').split('\n').filter((line) => line.startsWith('|'))
  const listed = rows.map((row) => {
    const [, , old = '', now = ''] = row.split('|')
    const nameIn = (cell: string) => /`(\w+)=?`/.exec(cell)?.[1]
    return `${nameIn(old)} -> ${nameIn(now)}, ${release}`
  })
  assert.ok(listed.length >= 5)
  assert.deepEqual([...new Set(markedIn(document))].toSorted(), [...new Set(listed)].toSorted())
  // The calls that a row names have the mark.
  for (const row of rows) {
    const [, where = '', old = ''] = row.split('|')
    const name = /`(\w+)=?`/.exec(old)?.[1] ?? ''
    for (const [, called = ''] of where.matchAll(/`GET (\S+)`/g))
      assert.ok(
        markedIn(resolved(document.paths[called]?.['get'])).some((mark) => mark.startsWith(`${name} -> `)),
        `${name} of ${called}`,
      )
  }
})

/** With the schemas that it refers to in place of their names. None of them contains itself. */
const resolved = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(resolved)
  if (typeof value !== 'object' || value === null) return value
  const { $ref } = value as { readonly $ref?: string }
  const name = /^#\/components\/schemas\/(\w+)$/.exec($ref ?? '')?.[1]
  if (name !== undefined) return resolved(document.components.schemas[name])
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, resolved(one)]))
}

test('a field that takes the place of a deprecated one is always there, and the deprecated one need not be', () => {
  const faults = everySchema(document).flatMap(({ properties = {}, required = [] }) =>
    Object.entries(properties).flatMap(([name, one]) => {
      const instead = /^Use `(\w+)`/.exec(one.description ?? '')?.[1]
      if (one.deprecated !== true || instead === undefined) return []
      return required.includes(instead) && !required.includes(name) ? [] : [`${name} -> ${instead}`]
    }),
  )
  assert.deepEqual(faults, [])
})

type ObjectSchema = {
  readonly properties?: Readonly<Record<string, { readonly deprecated?: boolean; readonly description?: string }>>
  readonly required?: readonly string[]
}
const everySchema = (value: unknown): readonly ObjectSchema[] => {
  if (typeof value !== 'object' || value === null) return []
  const within = Object.values(value).flatMap(everySchema)
  return 'properties' in value && 'type' in value ? [value as ObjectSchema, ...within] : within
}

test('the examples fit the schemas of the calls they belong to', () => {
  const shown = everyListener.flatMap(({ endpoints }) => endpoints).filter(({ example }) => example !== undefined)
  assert.ok(shown.length >= 16)
  for (const { example = {}, body, answer, ...declared } of shown) {
    if (example.request !== undefined) assert.ok(Check(body!, example.request), `request of ${nameOf(declared)}`)
    if (example.answer !== undefined) assert.ok(Check(answer!, example.answer), `answer of ${nameOf(declared)}`)
  }
})
