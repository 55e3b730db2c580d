// Answers of the plane, parsed once. Fields we do not know are let through: a newer plane may say more.

import { Value } from 'typebox/value'
import type { Static, TSchema } from 'typebox'
import { refusalFrom, unusableAnswer, type CallFacts, type PlaneFailure } from './plane-failure.ts'
import type { ExchangeAnswer } from '#platform/http-exchange.ts'

export const longestAnswer = 256 * 1024

export type Answered<T> = { readonly kind: 'answer'; readonly value: T }

export const parseAnswer = <S extends TSchema>(
  schema: S,
  answer: ExchangeAnswer,
  facts?: CallFacts,
): Answered<Static<S>> | PlaneFailure => {
  const { status, retryAfter, body } = answer
  if (status < 200 || status > 299) return refusalFrom(status, retryAfter, body, facts)
  try {
    const value: unknown = JSON.parse(body)
    if (Value.Check(schema, value)) return { kind: 'answer', value }
  } catch {
    // Not JSON: said below, like any other answer that is not one.
  }
  return unusableAnswer('it does not fit the schema', facts)
}
