// The API described by the same declarations and schemas that serve it: OpenAPI 3.1, whose schemas are JSON Schema as they are.

import type { TSchema } from 'typebox'
import type { Access, Endpoint } from '#wire/core/endpoint.ts'
import { operatorListener, type DescribedListener } from '#wire/listeners.ts'
import { publishedSchemas } from '#wire/published-schemas.ts'
import { refusalResponses, refusalsOf } from './openapi-refusals.ts'

type Json = Record<string, unknown>

export const openApiDocument = (version: string, listeners: readonly DescribedListener[]): Json => ({
  openapi: '3.1.0',
  info: {
    title: 'Muster',
    version,
    description:
      'A node trust plane. Node and operator routes never share a listener. Times are RFC 3339, durations milliseconds.',
    license: { name: 'Apache License 2.0', identifier: 'Apache-2.0' },
  },
  // Calls of the other listeners name their own.
  servers: [operatorListener.server],
  tags: listeners.map(({ name, description }) => ({ name, description })),
  paths: pathsOf(listeners),
  components: {
    securitySchemes: {
      operatorKey: { type: 'http', scheme: 'bearer', description: 'An operator key, `muster_key_` and 43 characters' },
      enrollmentToken: {
        type: 'http',
        scheme: 'bearer',
        description: 'An enrollment token, `enroll_` and 43 characters',
      },
      clientCertificate: { type: 'mutualTLS', description: 'The certificate of the node named in the path' },
    },
    responses: {
      ...refusalResponses(),
      Refused: {
        description: 'Refused. The code is one of a closed list, `next` says what to do about it.',
        content: { 'application/json': { schema: { $ref: '#/components/schemas/ErrorBody' } } },
      },
    },
    schemas: Object.fromEntries([...schemaNames].map(([schema, name]) => [name, plain(schema, schema)])),
  },
})

const pathsOf = (listeners: readonly DescribedListener[]): Json => {
  const paths: Record<string, Json> = {}
  for (const listener of listeners) {
    for (const declared of listener.endpoints) {
      const path = declared.path.replace(/:(\w+)/g, '{$1}')
      const method = declared.method.toLowerCase()
      // What two listeners answer alike is described once, under both.
      const before = paths[path]?.[method] as { tags: string[]; servers?: object[] } | undefined
      const tags = [...(before?.tags ?? []), listener.name]
      const servers = listener === operatorListener ? {} : { servers: [...(before?.servers ?? []), listener.server] }
      paths[path] = { ...paths[path], [method]: { ...operation(declared, listener), ...servers, tags } }
    }
  }
  return paths
}

const operation = (declared: Endpoint, listener: DescribedListener): Json => {
  const { example } = declared
  return {
    operationId: operationId(declared),
    summary: declared.summary,
    ...security(declared.access),
    parameters: [...parameters('path', declared.params), ...parameters('query', declared.query)],
    ...(declared.body !== undefined && {
      requestBody: { required: true, content: { 'application/json': content(declared.body, example?.request) } },
    }),
    responses: {
      ...success(declared),
      ...refusalsOf(declared, listener === operatorListener),
      default: { $ref: '#/components/responses/Refused' },
    },
  }
}

const success = (declared: Endpoint): Json => {
  const { example } = declared
  if (declared.file !== undefined) return fileAnswers(declared.file)
  if (declared.kind === 'upgrade') return { 101: { description: 'The connection is a channel now' } }
  const described =
    declared.answer === undefined
      ? { description: 'Done' }
      : { description: 'Done', content: { 'application/json': content(declared.answer, example?.answer) } }
  return { [example?.status ?? 200]: described, ...(declared.mayBeUnready === true && { 503: described }) }
}

const fileAnswers = ({ contentType }: { readonly contentType: string }): Json => ({
  200: { description: 'All of it', content: { [contentType]: {} } },
  206: { description: 'The range that was asked for', content: { [contentType]: {} } },
  304: { description: 'The caller has it already' },
})

const security = (access: Access): Json => {
  switch (access) {
    case 'anyone':
      return { security: [] }
    case 'node-itself':
      return { security: [{ clientCertificate: [] }] }
    case 'worker':
      return { security: [{ clientCertificate: [] }], description: 'Needs the certificate of a worker.' }
    case 'machine':
      return { security: [{ clientCertificate: [] }, { enrollmentToken: [] }] }
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
    ...('deprecated' in property && { deprecated: true }),
    schema: plain(property, null),
  }))
}

const operationId = ({ method, path }: Endpoint): string =>
  method.toLowerCase() +
  path
    .split(/[^A-Za-z0-9]+/)
    .filter((word) => word !== '' && word !== 'v1')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')

const schemaNames: ReadonlyMap<unknown, string> = new Map(
  Object.entries(publishedSchemas).map(([name, schema]) => [schema, name]),
)

const plain = (schema: unknown, top: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map((item) => plain(item, null))
  if (typeof schema !== 'object' || schema === null) return schema
  const name = schema === top ? undefined : schemaNames.get(schema)
  if (name !== undefined) return { $ref: `#/components/schemas/${name}` }
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, plain(value, null)]))
}
