// What the schemas here are made of, and the requests and path parameters that calls of several features share.

import { Type, type TEnum, type TSchema } from 'typebox'
import { recordOf } from '#platform/json-schema.ts'

/** For requests: unknown fields are refused. */
export const closed = { additionalProperties: false } as const

/** Not empty, and no longer than that. */
export const text = (maxLength: number) => Type.String({ minLength: 1, maxLength })

export const orNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])

/** The release that drops what is deprecated (docs/API.md#deprecated). */
const droppedIn = '0.8.0'

/** An old name, beside the one that takes its place. The description of the API marks it, and a test holds the list in docs/API.md against the marks. */
export const deprecated = <T extends TSchema>(schema: T, { use }: { readonly use: string }): T => ({
  ...schema,
  deprecated: true,
  description: `Use \`${use}\`. Dropped in ${droppedIn}.`,
})

/** Typed by hand: `Type.Enum` forgets which strings they were when called with a type parameter. */
export const oneOf = <const T extends readonly string[]>(values: T) =>
  Type.Enum([...values]) as unknown as TEnum<T[number][]>

export const nodeIdShape = '^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$'
export const NodeIdText = Type.String({
  pattern: nodeIdShape,
  maxLength: 63,
  description: 'Lower-case letters, digits, dots, dashes and underscores',
})

/** An id, or a glob over ids. */
export const nodeGlobShape = '[a-z0-9.*?_-]{1,63}'
export const tagShape = '^[a-z0-9]([a-z0-9._:-]{0,61}[a-z0-9])?$'
/** On a machine. */
export const TagText = Type.String({
  pattern: tagShape,
  maxLength: 63,
  description: 'Lower-case letters, digits, dots, dashes, underscores and colons',
})
/** KEY or KEY=VALUE. */
export const tagFilterShape = '[a-z0-9._:-]{1,63}(=[a-z0-9._:-]{1,63})?'

/** Of profiles and vClusters. */
export const NameText = Type.String({
  pattern: '^[a-z0-9][a-z0-9-]{0,62}$',
  description: 'Lower-case letters, digits and dashes, at most 63',
})

export const NodeParams = Type.Object({ id: NodeIdText }, closed)
export const IdParams = Type.Object({ id: Type.String({ pattern: '^[0-9A-Za-z_-]{1,64}$' }) }, closed)
export const NameParams = Type.Object({ name: NameText }, closed)

export const EmptyRequest = Type.Object({}, closed)

/** A part of all nodes, such as `0/4`: the first of four. */
export const ShardQuery = Type.Object(
  { shard: Type.Optional(Type.String({ pattern: '^(0|[1-9][0-9]{0,2})/[1-9][0-9]{0,2}$' })) },
  closed,
)

/** Why, for the journal. */
export const ReasonRequest = Type.Object({ reason: text(256) }, closed)

/**
 * What is changed, by the dotted names of settings: {"certificate.lifetimeMs": 3600000}. A name that is none is refused with those that
 * there are, which a schema does not say.
 */
export const Settings = recordOf(Type.String({ pattern: '^[A-Za-z]+(\\.[A-Za-z]+)*$' }), Type.Unknown(), {
  ...{ maxProperties: 64, additionalProperties: true },
})
export const SetRequest = Type.Object({ set: Settings }, closed)

/** In an answer: the settings in it that have no effect yet. Left out by planes of 0.3. */
export const NoEffectYet = Type.Optional(Type.Array(Type.String()))
