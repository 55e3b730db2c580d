// The API described by the same routes and schemas that serve it: OpenAPI 3.1, whose schemas are JSON Schema as they are.

import type { TSchema } from 'typebox'
import * as alertApi from '#wire/alerts/alert-api.ts'
import * as allocationApi from '#wire/fleet/allocation-api.ts'
import * as caApi from '#wire/ca/ca-api.ts'
import * as caWithdrawalApi from '#wire/ca/ca-withdrawal-api.ts'
import * as certificateStatusApi from '#wire/ca/certificate-status-api.ts'
import * as claimApi from '#wire/federation/claim-api.ts'
import * as hardwareApi from '#wire/fleet/hardware-api.ts'
import * as healthApi from '#wire/fleet/health-api.ts'
import * as issuanceApi from '#wire/identity/issuance-api.ts'
import * as nodeApi from '#wire/api/node-api.ts'
import * as operatorApi from '#wire/api/operator-api.ts'
import * as planApi from '#wire/plans/plan-api.ts'
import * as receiptApi from '#wire/revocation/receipt-api.ts'
import * as recoveryApi from '#wire/recovery/recovery-api.ts'
import * as schedulingApi from '#wire/fleet/scheduling-api.ts'
import * as vclusterApi from '#wire/fleet/vcluster-api.ts'
import type { Access, Route } from './route.ts'
import { apiExamples } from './openapi-examples.ts'

export type DescribedPlane = { readonly name: string; readonly description: string; readonly routes: readonly Route[] }

type Json = Record<string, unknown>

export const openApiDocument = (version: string, planes: readonly DescribedPlane[]): Json => ({
  openapi: '3.1.0',
  info: {
    title: 'Muster',
    version,
    description:
      'A node trust plane. Node and operator routes never share a listener. Times are RFC 3339, durations milliseconds.',
  },
  tags: planes.map(({ name, description }) => ({ name, description })),
  paths: pathsOf(planes),
  components: {
    securitySchemes: {
      operatorKey: { type: 'http', scheme: 'bearer', description: 'An operator key, `muster_key_` and 43 characters' },
      clientCertificate: { type: 'mutualTLS', description: 'The certificate of the node named in the path' },
    },
    responses: {
      Refused: {
        description: 'Refused. The code is one of a closed list, `next` says what to do about it.',
        headers: { 'Retry-After': { description: 'Seconds, where waiting helps', schema: { type: 'integer' } } },
        content: { 'application/json': { schema: { $ref: '#/components/schemas/ErrorBody' } } },
      },
    },
    schemas: Object.fromEntries([...schemaNames].map(([schema, name]) => [name, plain(schema, schema)])),
  },
})

const pathsOf = (planes: readonly DescribedPlane[]): Json => {
  const paths: Record<string, Json> = {}
  for (const { name, routes } of planes) {
    for (const route of routes) {
      const path = route.path.replace(/:(\w+)/g, '{$1}')
      const method = route.method.toLowerCase()
      // What two listeners answer alike is described once, under both.
      const tags = [...((paths[path]?.[method] as { tags: string[] } | undefined)?.tags ?? []), name]
      paths[path] = { ...paths[path], [method]: { ...operation(route), tags } }
    }
  }
  return paths
}

const operation = (route: Route): Json => {
  const example = apiExamples[`${route.method} ${route.path}`]
  return {
    operationId: operationId(route),
    summary: route.summary,
    ...security(route.access),
    parameters: [...parameters('path', route.params), ...parameters('query', route.query)],
    ...(route.body !== undefined && {
      requestBody: { required: true, content: { 'application/json': content(route.body, example?.request) } },
    }),
    responses: { ...success(route, example), default: { $ref: '#/components/responses/Refused' } },
  }
}

const success = (route: Route, example: (typeof apiExamples)[string]): Json => {
  if (route.kind === 'upgrade') return { 101: { description: 'The connection is a channel now' } }
  const described =
    route.answer === undefined
      ? { description: 'Done' }
      : { description: 'Done', content: { 'application/json': content(route.answer, example?.answer) } }
  return { [example?.status ?? 200]: described }
}

const security = (access: Access): Json => {
  switch (access) {
    case 'anyone':
      return { security: [] }
    case 'node-itself':
      return { security: [{ clientCertificate: [] }] }
    case 'viewer':
    case 'operator':
    case 'platform-admin':
      return { security: [{ operatorKey: [] }], description: `Needs the role \`${access}\` or one above it.` }
  }
}

const content = (schema: TSchema, example: unknown): Json => ({
  schema: plain(schema, null),
  ...(example !== undefined && { example }),
})

const parameters = (where: 'path' | 'query', schema: TSchema | undefined): Json[] => {
  if (schema === undefined || !('properties' in schema)) return []
  const required = 'required' in schema ? (schema.required as readonly string[]) : []
  return Object.entries(schema.properties as Record<string, object>).map(([name, property]) => ({
    name,
    in: where,
    required: where === 'path' || required.includes(name),
    schema: plain(property, null),
  }))
}

const operationId = ({ method, path }: Route): string =>
  method.toLowerCase() +
  path
    .split(/[^A-Za-z0-9]+/)
    .filter((word) => word !== '' && word !== 'v1')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')

/** Schemas that are exported by name keep it; the others stand where they are used. */
const schemaNames: ReadonlyMap<unknown, string> = new Map(
  Object.entries({
    ...alertApi,
    ...allocationApi,
    ...caApi,
    ...caWithdrawalApi,
    ...certificateStatusApi,
    ...claimApi,
    ...hardwareApi,
    ...healthApi,
    ...issuanceApi,
    ...nodeApi,
    ...operatorApi,
    ...planApi,
    ...receiptApi,
    ...recoveryApi,
    ...schedulingApi,
    ...vclusterApi,
  })
    .filter(([, value]) => typeof value === 'object' && value !== null && 'type' in value && value.type === 'object')
    .map(([name, value]) => [value, name]),
)

const plain = (schema: unknown, top: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map((item) => plain(item, null))
  if (typeof schema !== 'object' || schema === null) return schema
  const name = schema === top ? undefined : schemaNames.get(schema)
  if (name !== undefined) return { $ref: `#/components/schemas/${name}` }
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, plain(value, null)]))
}
