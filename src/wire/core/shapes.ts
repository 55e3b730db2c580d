// What the schemas here are made of.

import { Type, type TEnum, type TSchema } from 'typebox'

/** Of requests: fields nobody knows are refused. */
export const closed = { additionalProperties: false } as const

/** Not empty, and no longer than that. */
export const text = (maxLength: number) => Type.String({ minLength: 1, maxLength })

export const orNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])

/** Typed by hand: `Type.Enum` forgets which strings they were when called with a type parameter. */
export const oneOf = <const T extends readonly string[]>(values: T) =>
  Type.Enum([...values]) as unknown as TEnum<T[number][]>
