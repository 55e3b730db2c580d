// What happened to this agent: the causal chain for `muster agent explain` and for reports. Equal events are one, counted.
// Bounded, and without secrets.

import { Type, type Static } from 'typebox'
import { recordOf } from '#platform/json-schema.ts'
import { failureClasses } from '#domain/core/node.ts'
import { boundedEvidence, tidy } from '#agent/core/trouble.ts'

const orNull = <T extends import('typebox').TSchema>(schema: T) => Type.Union([schema, Type.Null()])
const time = Type.String({ maxLength: 32 })
const short = Type.String({ maxLength: 64 })
const text = Type.String({ maxLength: 512 })

export const RecordedEvent = Type.Object({
  first: time,
  /** The last time it happened. */
  at: time,
  place: short,
  event: Type.Union([
    Type.Literal('failed'),
    Type.Literal('tried'),
    Type.Literal('succeeded'),
    Type.Literal('changed'),
  ]),
  class: orNull(Type.Enum([...failureClasses])),
  code: short,
  text,
  next: text,
  times: Type.Integer({ minimum: 1 }),
  correlation: orNull(short),
  next_try: orNull(time),
  evidence: recordOf(short, Type.Union([Type.String({ maxLength: 128 }), Type.Number(), Type.Null()])),
})
export type RecordedEvent = Static<typeof RecordedEvent>

export type NewEvent = Omit<RecordedEvent, 'first' | 'at' | 'times'>

export const mostEvents = 64

/** Pure. The same again, since its place last went well, is counted and moves to the end. */
export const withEvent = (events: readonly RecordedEvent[], event: NewEvent, at: string): readonly RecordedEvent[] => {
  const wentWell = events.findLastIndex(({ place, event: what }) => place === event.place && what === 'succeeded')
  const same = events.find(
    (other, index) =>
      (index > wentWell || event.event === 'succeeded') &&
      other.place === event.place &&
      other.event === event.event &&
      other.code === event.code &&
      (event.event === 'failed' || other.text === event.text),
  )
  const entry: RecordedEvent = {
    ...event,
    code: tidy(event.code, 64),
    text: tidy(event.text, 512),
    next: tidy(event.next, 512),
    correlation: event.correlation === null ? null : tidy(event.correlation, 64),
    evidence: boundedEvidence(event.evidence),
    first: same?.first ?? at,
    at,
    times: (same?.times ?? 0) + 1,
  }
  return [...events.filter((other) => other !== same), entry].slice(-mostEvents)
}
