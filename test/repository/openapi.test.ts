// The description of the API is the API: generated, up to date, and its examples fit.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { test } from 'node:test'
import { Check } from 'typebox/value'
import { nodeRoutes, type NodeRouteDeps } from '#plane/boot/node-plane.ts'
import { operatorRoutes, type OperatorRoutesDeps } from '#plane/boot/operator-routes.ts'
import { recoveryRoutes, type RecoveryRouteDeps } from '#plane/recovery/recovery-routes.ts'
import { apiExamples } from '#plane/http/openapi-examples.ts'
import { apiPage, apiPageText, openApiFile, openApiText } from '../../scripts/openapi.ts'

type Operation = { readonly operationId: string; readonly security: readonly object[]; readonly responses: object }
type Document = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, object>> }
}

const document = JSON.parse(openApiText()) as Document
const routes = [
  ...nodeRoutes({} as NodeRouteDeps),
  ...recoveryRoutes({} as RecoveryRouteDeps),
  ...operatorRoutes({} as OperatorRoutesDeps),
]

test('docs/openapi.json and the tables of docs/API.md are what scripts/openapi.ts writes', async () => {
  const advice = 'run: node scripts/openapi.ts'
  assert.ok(fs.readFileSync(openApiFile, 'utf8') === openApiText(), advice)
  const page = fs.readFileSync(apiPage, 'utf8')
  assert.ok(page === (await apiPageText(page)), advice)
})

test('every route of every listener is described, with what it asks for and how it refuses', () => {
  for (const { method, path, access } of routes) {
    const operation = document.paths[path.replace(/:(\w+)/g, '{$1}')]?.[method.toLowerCase()]
    assert.ok(operation !== undefined, `${method} ${path}`)
    assert.equal(operation.security.length === 0, access === 'anyone', `${method} ${path}`)
    assert.ok('default' in operation.responses)
  }
})

test('no two operations share an id', () => {
  const ids = Object.values(document.paths).flatMap((path) => Object.values(path).map(({ operationId }) => operationId))
  // What two listeners answer alike is one operation.
  assert.equal(ids.length, new Set(routes.map(({ method, path }) => `${method} ${path}`)).size)
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

test('the examples fit the schemas of the routes they belong to', () => {
  for (const [name, example] of Object.entries(apiExamples)) {
    const route = routes.find(({ method, path }) => `${method} ${path}` === name)
    assert.ok(route !== undefined && example !== undefined, name)
    if (example.request !== undefined) assert.ok(Check(route.body!, example.request), `request of ${name}`)
    if (example.answer !== undefined) assert.ok(Check(route.answer!, example.answer), `answer of ${name}`)
  }
})
